/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* wanted.c - the differences that we want, each with its reason. */
#include "flow.h"

#include <errno.h>
#include <string.h>

/* Only these worlds have seen something, and each of it passes. */
static bool all(const struct difference *difference, enum which_world which,
		bool (*passes)(const struct difference *, const struct arrival *))
{
	for (size_t i = 0; i < difference->count[which]; i++)
		if (!passes(difference, difference->only[which][i]))
			return false;
	return true;
}

static bool is_hosts_refusal(const struct difference *difference, const struct arrival *arrival)
{
	return !arrival->copy && (arrival->packet.flags & RST || is_icmp_error(&arrival->packet));
}

static bool is_untranslated(const struct difference *difference, const struct arrival *arrival)
{
	return arrival->copy &&
	       same_address(&arrival->packet.source, &difference->step->sent[REFERENCE].source);
}

static bool is_copy(const struct difference *difference, const struct arrival *arrival)
{
	return arrival->copy;
}

/* Neighbours' and groups' messages of IPv6 count as INVALID, too. */
static bool may_be_invalid(const struct step *step)
{
	return step->invalid && step->flow &&
	       (step->error || step->flow->first.protocol != IPPROTO_UDP);
}

static bool is_served(const struct difference *difference)
{
	return difference->step->unserved && difference->step->forward &&
	       all(difference, OURS, is_copy) && all(difference, REFERENCE, is_hosts_refusal);
}

static bool is_invalid(const struct difference *difference)
{
	return (may_be_invalid(difference->step) || difference->step->odd) &&
	       all(difference, OURS, is_copy) && all(difference, REFERENCE, is_hosts_refusal);
}

static bool is_let_out(const struct difference *difference)
{
	return may_be_invalid(difference->step) && all(difference, REFERENCE, is_untranslated);
}

/* A client goes on with a connection to the container's own address that was never begun, or has
 * ended. Ours has no record of it: one made in the middle would keep what the container itself has
 * begun from being masqueraded. So an error about it does not leave, either. */
static bool is_taken_up(const struct difference *difference)
{
	const struct step *step = difference->step;

	return (step->odd || (step->error && step->flow->views[REFERENCE].midway)) &&
	       !step->forward && difference->count[REFERENCE] &&
	       all(difference, REFERENCE, is_untranslated) && all(difference, OURS, is_copy);
}

/* In the reference a client's SYN that is sent again goes to the address that the container had
 * before it was replaced, as conntrack has it. */
static bool is_succeeded(const struct difference *difference)
{
	const struct step *step = difference->step;
	const struct view *view = step->flow ? &step->flow->views[REFERENCE] : NULL;

	return view && view->learned && !view->arrived && step->forward &&
	       step->flow->first.protocol == IPPROTO_TCP && !difference->count[REFERENCE] &&
	       all(difference, OURS, is_copy);
}

/* The same packet has arrived at the same place, but from another address or port. */
static bool is_source_alone(const struct difference *difference)
{
	const struct arrival *theirs = difference->only[REFERENCE][0];
	const struct arrival *own = difference->only[OURS][0];

	return difference->count[REFERENCE] == 1 && difference->count[OURS] == 1 && theirs->copy &&
	       own->copy && theirs->end == own->end &&
	       theirs->packet.destination_port == own->packet.destination_port &&
	       same_address(&theirs->packet.destination, &own->packet.destination);
}

/* A client has ended a connection to the container's own address by a RST. */
static bool is_late(const struct difference *difference)
{
	const struct flow *flow = difference->step->flow;

	return flow && flow->views[REFERENCE].reset && !difference->step->forward &&
	       is_source_alone(difference) && all(difference, OURS, is_untranslated);
}

/* A SYN has the ports of a connection whose end was not seen by the stack. */
static bool is_begun_again(const struct difference *difference)
{
	const struct step *step = difference->step;

	return step->flow && step->forward && step->sent[OURS].flags == SYN &&
	       step->flow->views[OURS].answered && is_source_alone(difference) &&
	       !strstr(difference->only[OURS][0]->text, "another source") && fast_path_is_on();
}

/* A container begins with the ports of a client that has reached it by its own address. */
static bool is_moved(const struct difference *difference)
{
	const struct step *step = difference->step;
	const struct packet *theirs, *own;

	if (!step->flow || step->forward || !is_source_alone(difference) ||
	    end_of(&worlds[OURS], &step->flow->first.destination) != step->flow->views[OURS].at)
		return false;
	theirs = &difference->only[REFERENCE][0]->packet;
	own = &difference->only[OURS][0]->packet;
	return same_address(&theirs->source, &own->source) &&
	       !same_address(&own->source, &step->sent[OURS].source);
}

static bool is_forged(const struct difference *difference)
{
	return difference->step->flow && difference->step->flow->forged;
}

/* portmap lets loopback addresses out of the host (route_localnet), for all. */
static bool is_bound_to_loopback(const struct difference *difference)
{
	const struct flow *flow = difference->step->flow;

	return flow && flow->origin == HOST && flow->binds &&
	       same_address(&flow->bound, (const struct in6_addr[]){address_of("127.0.0.1")}) &&
	       end_of(&worlds[OURS], &flow->first.destination) != HOST;
}

static bool is_hosts(const struct difference *difference, const struct arrival *arrival)
{
	return arrival->end == HOST;
}

static bool is_ended(const struct difference *difference)
{
	return !difference->step->flow && !difference->count[REFERENCE] &&
	       all(difference, OURS, is_hosts) && strstr(difference->step->text, "container_");
}

/* Where a rule gives two connections the same address and port, netfilter refuses the second: the
 * host's own process gets an error, a forwarded packet is dropped. */
static bool is_refused(const struct difference *difference, const struct arrival *arrival)
{
	return arrival->end == HOST && strstr(arrival->text, strerror(EPERM));
}

/* A copy, or how a process's TCP connection comes to be: its kernel's SYN, and that it is there */
static bool is_through(const struct difference *difference, const struct arrival *arrival)
{
	const struct flow *flow = difference->step->flow;

	return arrival->copy ||
	       (flow && flow->origin == HOST && flow->first.protocol == IPPROTO_TCP &&
		(arrival->packet.flags == SYN || strstr(arrival->text, "connect: done")));
}

static bool is_clash(const struct difference *difference)
{
	return (difference->count[REFERENCE] || difference->step->refused[REFERENCE]) &&
	       all(difference, REFERENCE, is_refused) && all(difference, OURS, is_through);
}

/* What ours translates has no `ct status dnat`: another rule than the reference's masquerades it,
 * which has one port for all. */
static bool is_without_port(const struct difference *difference)
{
	return difference->step->refused[OURS] && !difference->count[OURS] &&
	       all(difference, REFERENCE, is_copy);
}

/* A process of the host has begun with an address of the host that has gone since. What it sends
 * goes nowhere in ours; an answer arrives in ours alone, whose sockets have the bridge's address.
 */
static bool is_of_gone_address(const struct difference *difference)
{
	const struct flow *flow = difference->step->flow;

	if (!flow || flow->origin != HOST || events_second_address() ||
	    (!same_address(&flow->first.destination,
			   (const struct in6_addr[]){address_of("192.0.2.7")}) &&
	     !same_address(&flow->first.destination,
			   (const struct in6_addr[]){address_of("2001:db8:1::7")})))
		return false;
	return difference->step->forward
		       ? !difference->count[OURS]
		       : !difference->count[REFERENCE] && all(difference, OURS, is_hosts);
}

/* A container asks or answers itself. */
static bool is_own_answer(const struct difference *difference)
{
	const struct flow *flow = difference->step->flow;

	return flow && flow->views[OURS].at == flow->origin && !difference->count[REFERENCE] &&
	       all(difference, OURS, is_copy);
}

/* portmap deletes conntrack's entries of UDP by the destination's port alone. */
static bool is_forgotten(const struct difference *difference)
{
	static const uint16_t host_ports[] = {5353, 8080, 9090, 20089};
	const struct flow *flow = difference->step->flow;
	bool is_mapped = false;

	for (size_t i = 0; flow && i < sizeof(host_ports) / sizeof(*host_ports); i++)
		is_mapped |= flow->first.destination_port == host_ports[i];
	/* An answer begins anew: it is refused, or masqueraded as whatever a container begins. */
	return is_mapped && !difference->step->forward && flow->first.protocol == IPPROTO_UDP &&
	       all(difference, OURS, is_copy);
}

struct entry {
	bool (*is)(const struct difference *difference);
	const char *why;
};

static const struct entry list[] = {
	{is_forged, "a forged source: ours drops it, or does not masquerade it"},
	{is_bound_to_loopback, "route_localnet, which portmap sets, lets a loopback address out"},
	{is_ended, "DEL ends what the host's processes have connected to the container"},
	{is_clash, "a fixed port of a masquerade that is taken: ours does not come there"},
	{is_without_port,
	 "a fixed port that is taken: ours comes there, as it is no DNAT for netfilter"},
	{is_of_gone_address, "what the host's process has with an address that has gone"},
	{is_own_answer, "br_netfilter that comes meanwhile loses what a container says to itself"},
	{is_forgotten, "portmap's ADD forgets all UDP to a port with the mapping's number"},
	{is_served, "conntrack's entry without translation takes nothing from a container"},
	{is_invalid, "what no sound stack sends in this state the host refuses, ours delivers"},
	{is_let_out, "what conntrack calls INVALID netfilter lets out untranslated"},
	{is_succeeded, "a container's successor gets what was sent to it and not answered"},
	{is_late, "conntrack forgets at a RST what was not answered, ours ends it seconds later"},
	{is_begun_again, "conntrack has not seen an end past the stack: a rule since is too late"},
	{is_moved, "netfilter moves a port that it has already, before ours masquerades"},
	{is_taken_up, "conntrack takes up TCP in the middle, and its answers are not masqueraded"},
};

const char *wanted(const struct difference *difference)
{
	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++)
		if (list[i].is(difference))
			return list[i].why;
	return NULL;
}
