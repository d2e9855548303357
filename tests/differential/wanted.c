/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* wanted.c - the differences that we want, each with its reason. */
#include "flow.h"

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
	return arrival->copy && same_address(&arrival->packet.source,
					     &difference->step->sent[REFERENCE].source);
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
	return may_be_invalid(difference->step) && all(difference, OURS, is_copy) &&
	       all(difference, REFERENCE, is_hosts_refusal);
}

static bool is_let_out(const struct difference *difference)
{
	return may_be_invalid(difference->step) && all(difference, REFERENCE, is_untranslated);
}

static bool is_forged(const struct difference *difference)
{
	return difference->step->flow && difference->step->flow->forged && !difference->count[OURS];
}

/* An answer to a client that another NAT has translated */
static bool answers_masqueraded(const struct difference *difference)
{
	const struct step *step = difference->step;
	const struct view *view = step->flow ? &step->flow->views[OURS] : NULL;

	return view && !step->forward && view->learned && step->flow->origin != HOST &&
	       !same_address(&view->address, &step->flow->first.source);
}

static bool is_n1(const struct difference *difference)
{
	return answers_masqueraded(difference) &&
	       difference->step->flow->views[OURS].port == 20089;
}

static bool is_n2(const struct difference *difference)
{
	return answers_masqueraded(difference) && difference->step->flow->origin >= WEB;
}

static bool is_n7(const struct difference *difference)
{
	return answers_masqueraded(difference) &&
	       end_of(&worlds[OURS], &difference->step->flow->first.destination) != HOST;
}

static bool is_of_hosts_socket(const struct difference *difference)
{
	return difference->step->flow && difference->step->flow->origin == HOST;
}

struct entry {
	bool (*is)(const struct difference *difference);
	const char *why;
};

/* Not mended yet: each line goes with its mend. */
static const struct entry defects[] = {
	{is_n1, "not mended: an answer to a masquerade whose port is a hostPort"},
	{is_n2, "not mended: an answer to a sibling that another NAT masquerades"},
	{is_n7, "not mended: an answer from a container's own address to a masqueraded client"},
	{is_of_hosts_socket, "not mended: sockets of the host"},
};

static const struct entry list[] = {
	{is_forged, "forged sources end at our programs"},
	{is_served, "conntrack's entry without translation takes nothing from a container"},
	{is_invalid, "what conntrack calls INVALID the host refuses, ours delivers"},
	{is_let_out, "what conntrack calls INVALID netfilter lets out untranslated"},
};

static const char *find(const struct entry *entries, size_t count,
			const struct difference *difference)
{
	for (size_t i = 0; i < count; i++)
		if (entries[i].is(difference))
			return entries[i].why;
	return NULL;
}

const char *wanted(const struct difference *difference)
{
	return find(list, sizeof(list) / sizeof(*list), difference);
}

const char *known_defect(const struct difference *difference)
{
	return find(defects, sizeof(defects) / sizeof(*defects), difference);
}
