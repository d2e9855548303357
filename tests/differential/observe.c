/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * observe.c - what an arrival is, in words that are the same in both worlds when the same has
 * happened: a copy of what was sent is told by what it does not have in common with it, and the
 * port that NAT has chosen for a flow is called 1.
 */
#include "flow.h"

#include <stdio.h>
#include <string.h>

#define SYMBOL 1

static bool same_payload(const struct packet *a, const struct packet *b)
{
	return a->size == b->size && !memcmp(a->payload, b->payload, a->size);
}

static bool is_copy(const struct step *step, enum which_world which, const struct packet *packet)
{
	const struct packet *sent = &step->sent[which];

	if (!step->sends[which] || packet->protocol != sent->protocol)
		return false;
	if (step->forward && step->flow->origin == HOST)
		return packet->size && same_payload(packet, sent);
	return packet->id == sent->id && packet->tos == sent->tos;
}

static uint32_t next_sequence(const struct packet *packet)
{
	return packet->sequence + (uint32_t)packet->size + !!(packet->flags & (SYN | FIN));
}

/* The first packet of a flow shows what NAT makes of its source; later ones have to look alike, but
 * for a new connection after a RST. Returns false if this one does not. */
static bool learn_source(struct view *view, const struct packet *packet)
{
	if (view->reset && (packet->flags & (SYN | ACK)) == SYN)
		view->learned = view->reset = false;
	view->reset |= packet->flags & RST;

	bool same = view->learned && view->port == packet->source_port &&
		    same_address(&view->address, &packet->source);
	bool known = view->learned;

	view->learned = true;
	view->port = packet->source_port;
	view->address = packet->source;
	return !known || same;
}

/* Whether a connection goes on that was never begun, or has ended */
static void learn_beginning(struct view *view, const struct packet *packet)
{
	if (packet->flags & SYN)
		view->midway = false;
	else if (!view->arrived || view->ended)
		view->midway = packet->protocol == IPPROTO_TCP;
	view->ended = packet->flags & RST;
}

static bool learn(struct step *step, enum which_world which, const struct arrival *arrival)
{
	struct flow *flow = step->flow;
	struct view *view = &flow->views[which];
	const struct packet *packet = &arrival->packet;
	bool stream = flow->origin == HOST && packet->protocol == IPPROTO_TCP;

	if (step->error || is_icmp_error(packet))
		return true;
	if (step->forward && (arrival->copy || (stream && arrival->end != flow->origin))) {
		learn_beginning(view, packet);
		if (!view->arrived) /* the first one, or the first to its peer's successor */
			view->learned = false;
		view->arrived = true;
		view->at = arrival->end;
		view->forward = *packet;
		if (!step->odd)
			view->peer_expects = next_sequence(packet);
		return learn_source(view, packet);
	}
	if (arrival->end == flow->origin) {
		view->answered = true;
		view->ended |= packet->flags & RST;
		view->reply = *packet;
		if (!step->odd && !(packet->flags & RST))
			view->origin_expects = next_sequence(packet);
	}
	return true;
}

/* The host's kernel speaks TCP by itself, so its peers do, too. */
static bool answer_stream(struct step *step, enum which_world which, const struct arrival *arrival)
{
	const struct packet *received = &arrival->packet;
	struct flow *flow = step->flow;
	struct packet answer = {
		.source = received->destination,
		.destination = received->source,
		.protocol = IPPROTO_TCP,
		.source_port = received->destination_port,
		.destination_port = received->source_port,
		.flags = received->flags & SYN ? SYN | ACK : ACK,
		.sequence = flow->peer_sequence,
		.acknowledged = next_sequence(received),
		.id = 0,
		.ttl = 64,
	};
	uint8_t bytes[MAX_PACKET];

	if (flow->origin != HOST || received->protocol != IPPROTO_TCP || received->flags & RST ||
	    arrival->end == HOST || next_sequence(received) == received->sequence)
		return false;
	if (received->flags & SYN)
		answer.sequence--;
	world_send(&worlds[which], arrival->end, &answer, bytes, packet_whole(&answer, bytes));
	return true;
}

static void name_ports(struct packet *packet, const struct view *view)
{
	if (packet->source_port == view->port)
		packet->source_port = SYMBOL;
	if (packet->destination_port == view->port)
		packet->destination_port = SYMBOL;
}

/* What a copy has not in common with what was sent */
static void add_changes(char *text, size_t size, const struct packet *packet,
			const struct packet *sent)
{
	size_t used = strlen(text);

	snprintf(text + used, size - used, ", copy, ttl %d%s%s%s%s", packet->ttl - sent->ttl,
		 packet->sequence != sent->sequence ? ", another sequence number" : "",
		 packet->acknowledged != sent->acknowledged ? ", another acknowledgment" : "",
		 packet->flags != sent->flags ? ", other flags" : "",
		 is_icmp_error(sent) || same_payload(packet, sent) ? "" : ", another payload");
}

static bool is_container(enum end end)
{
	return end >= WEB && end < ENDS;
}

/* As whom a container sees a sibling that asks it by a host port, and a process of the host: the
 * reference masquerades the sibling, because its answer would go past the host; ours shows the
 * bridge's address for the host's others. */
static void name_neighbour(struct in6_addr *address, const struct step *step, enum end end)
{
	const struct flow *flow = step->flow;
	bool sibling = is_container(flow->origin) &&
		       end_of(&worlds[OURS], &flow->first.destination) == HOST &&
		       same_address(address, &flow->first.source);
	bool host = flow->origin == HOST && end_of(&worlds[OURS], address) == HOST;

	if (step->forward && is_container(end) && (sibling || host))
		*address = address_of(is_v4(address) ? "10.88.0.1" : "fd00:88::1");
}

static enum end sender(const struct step *step, enum which_world which)
{
	return !step->flow     ? HOST
	       : step->forward ? step->flow->origin
			       : step->flow->views[which].at;
}

static void tell(const struct step *step, enum which_world which, struct arrival *arrival,
		 bool consistent)
{
	const struct flow *flow = step->flow;
	const struct view *view = flow ? &flow->views[which] : NULL;
	struct packet named = arrival->packet, quoted;
	/* A container that asks its own host port is at both ends. */
	bool elsewhere = view && view->learned &&
			 (arrival->end != flow->origin || (step->forward && arrival->copy));
	char words[PACKET_TEXT];
	size_t used;

	if (elsewhere)
		name_ports(&named, view);
	if (elsewhere)
		name_neighbour(&named.source, step, arrival->end);
	snprintf(arrival->text, ARRIVAL_TEXT, "%s: %s%s%s%s", end_names[arrival->end],
		 packet_text(&named, words), consistent ? "" : ", another source than before",
		 named.flaw ? ", " : "", named.flaw ? named.flaw : "");
	/* br_netfilter bridges what it does not have to route. */
	if (is_container(arrival->end) && is_container(sender(step, which)))
		named.ttl = step->sent[which].ttl;
	if (arrival->copy && !(step->forward && flow->origin == HOST))
		add_changes(arrival->text, ARRIVAL_TEXT, &named, &step->sent[which]);
	if (!is_icmp_error(&named) || !packet_quoted(&quoted, &named))
		return;
	if (elsewhere)
		name_ports(&quoted, view);
	if (elsewhere)
		name_neighbour(&quoted.destination, step, arrival->end);
	used = strlen(arrival->text);
	snprintf(arrival->text + used, ARRIVAL_TEXT - used, ", about %s",
		 packet_text(&quoted, words));
}

/* A kernel sends a SYN again that nobody has answered in time, and a SYN-ACK: at any later step. */
static bool is_sent_again(const struct step *step, enum which_world which,
			  const struct arrival *arrival)
{
	const struct packet *packet = &arrival->packet, *sent = &step->sent[which];

	if (arrival->copy || packet->protocol != IPPROTO_TCP || !(packet->flags & SYN))
		return false;
	if (!(packet->flags & ACK))
		return !step->flow || step->flow->origin != HOST;
	return !step->sends[which] || !(sent->flags & SYN) ||
	       packet->acknowledged != sent->sequence + 1;
}

bool observe(struct step *step, enum which_world which, size_t from)
{
	struct world *world = &worlds[which];
	bool answered = false;

	for (; from < world->count; from++) {
		struct arrival *arrival = &world->arrivals[from];
		bool consistent = true;

		if (arrival->text[0])
			continue;
		arrival->copy = step->flow && is_copy(step, which, &arrival->packet);
		/* When a kernel acknowledges is its own affair. */
		if (arrival->packet.protocol == IPPROTO_TCP && !arrival->copy &&
		    arrival->packet.flags == ACK && !arrival->packet.size)
			continue;
		if (is_sent_again(step, which, arrival))
			continue;
		if (step->flow)
			consistent = learn(step, which, arrival);
		tell(step, which, arrival, consistent);
		if (step->flow && answer_stream(step, which, arrival))
			answered = true;
	}
	return answered;
}

static struct packet unserved[1000];
static size_t unserved_count;

static bool same_connection(const struct packet *a, const struct packet *b)
{
	return a->protocol == b->protocol && a->source_port == b->source_port &&
	       a->destination_port == b->destination_port && same_address(&a->source, &b->source) &&
	       same_address(&a->destination, &b->destination);
}

bool unserved_before(const struct flow *flow)
{
	for (size_t i = 0; i < unserved_count; i++)
		if (same_connection(&unserved[i], &flow->first))
			return true;
	return false;
}

void unserved_note(const struct step *step)
{
	const struct world *world = &worlds[REFERENCE];

	if (!step->flow || !step->forward || step->error || step->flow->origin == HOST)
		return;
	for (size_t i = 0; i < world->count; i++)
		if (world->arrivals[i].copy)
			return;
	if (!unserved_before(step->flow) && unserved_count < 1000)
		unserved[unserved_count++] = step->flow->first;
}

void unserved_forget(void)
{
	unserved_count = 0;
}
