/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * steps.c - chooses the next packet of a flow, or a new flow, and sends it in both worlds. An answer
 * is an answer to what has arrived in that world.
 */
#include "flow.h"

#include <stdio.h>
#include <string.h>

#define TOS 0x48 /* no stack chooses it by itself */
#define MAX_PARTS 6

struct flow flows[FLOWS];

void flows_forget(void)
{
	memset(flows, 0, sizeof(flows));
}

#define PICK(list) ((list)[random_below(sizeof(list) / sizeof(*(list)))])

static struct in6_addr end_address(enum end end, bool v6)
{
	return worlds[OURS].ends[end].address[v6];
}

/* Addresses of the host, those that many ask first; the last one comes and goes. */
static struct in6_addr host_address(bool v6)
{
	static const char *const addresses[][2] = {
		{"192.0.2.1", "2001:db8:1::1"},	   {"192.0.2.1", "2001:db8:1::1"},
		{"192.0.2.1", "2001:db8:1::1"},	   {"198.51.100.1", "2001:db8:2::1"},
		{"198.51.100.1", "2001:db8:2::1"}, {"10.88.0.1", "fd00:88::1"},
		{"10.88.0.1", "fd00:88::1"},	   {"192.0.2.7", "2001:db8:1::7"},
	};

	return address_of(PICK(addresses)[v6]);
}

static uint16_t host_port(void)
{
	static const uint16_t ports[] = {8080, 8080, 8080, 20089, 20089, 9090, 5353,
					 31081, 31081, 31081, 8081, 7000, 7000, 9999};

	return PICK(ports);
}

static uint16_t other_port(void)
{
	static const uint16_t ports[] = {80, 80, 80, 53, 8080, 20089};

	return PICK(ports);
}

static void choose_destination(struct flow *flow, bool v6)
{
	struct packet *first = &flow->first;
	unsigned choice = random_below(100);

	if (flow->origin == HOST && !v6 && choice < 20)
		first->destination = address_of("127.0.0.1");
	else if (choice < 55)
		first->destination = host_address(v6);
	else if (choice < 60 && !v6)
		first->destination = address_of("10.96.0.10");
	else
		first->destination = end_address(random_below(ENDS), v6);
	first->destination_port = end_of(&worlds[OURS], &first->destination) != HOST ? other_port()
				  : choice >= 55 && choice < 60 && !v6		      ? 80
										      : host_port();
	if (same_address(&first->destination, &first->source))
		flow->used = false;
}

static void choose_source(struct flow *flow, bool v6)
{
	static const char *const others[][2] = {{"192.0.2.11", "2001:db8:1::11"},
						{"192.0.2.12", "2001:db8:1::12"}};
	static const char *const bound[] = {"127.0.0.1", "192.0.2.1", "10.88.0.1"};

	if (flow->origin == HOST) {
		flow->connects = random_chance(50);
		flow->binds = !v6 && random_chance(30);
		flow->bound = address_of(PICK(bound));
		return;
	}
	flow->first.source = end_address(flow->origin, v6);
	if (flow->origin == CLIENT && random_chance(40))
		flow->first.source = address_of(PICK(others)[v6]);
	if (random_chance(3)) {
		flow->forged = true;
		flow->first.source = end_address(random_below(ENDS), v6);
	}
}

/* The ports of a place are its own, and often the same again. */
static void open_flow(struct flow *flow)
{
	static const enum end origins[] = {CLIENT, CLIENT, CLIENT, CLIENT, SERVER, HOST,
					   HOST,   WEB,	   VICTIM, NAMED,  PLAIN,  PLAIN};
	unsigned protocol = random_below(20), place = (unsigned)(flow - flows);
	bool v6 = random_chance(50);

	/* What its end says to its peer is not this step's. */
	if (flow->origin == HOST) {
		host_end(flow);
		worlds_settle();
		worlds[REFERENCE].count = worlds[OURS].count = 0;
	}
	memset(flow, 0, sizeof(*flow));
	flow->used = true;
	flow->origin = PICK(origins);
	flow->first.protocol = protocol < 9 ? IPPROTO_TCP : protocol < 18 ? IPPROTO_UDP : IPPROTO_ICMP;
	choose_source(flow, v6);
	choose_destination(flow, v6);
	flow->first.source_port = (uint16_t)(40000 + place * 8 + random_below(4));
	if (flow->first.protocol == IPPROTO_ICMP)
		flow->first.destination_port = 0;
	if (flow->first.protocol == IPPROTO_ICMP && flow->origin == HOST)
		flow->used = false;
	flow->origin_sequence = 1000000 + random_below(1u << 30);
	flow->peer_sequence = 2000000 + random_below(1u << 30);
}

/* What a sound peer would do next */
static void choose_natural_tcp(struct step *step, struct flow *flow, struct packet *packet)
{
	static const uint8_t later[] = {PSH | ACK, PSH | ACK, PSH | ACK, PSH | ACK,
					PSH | ACK, FIN | ACK, RST | ACK, ACK};
	struct view *view = &flow->views[OURS];

	if (flow->stage == 1 && !view->arrived)
		flow->stage = view->answered && view->reply.flags == (SYN | ACK) ? 2 : 0;
	step->forward = flow->stage == 0 || flow->stage == 2 ||
			(flow->stage == 3 && random_chance(50));
	packet->flags = flow->stage == 0   ? SYN
			: flow->stage == 1 ? SYN | ACK
			: flow->stage == 2 ? ACK
					   : PICK(later);
	if (flow->stage < 3)
		flow->stage++;
	if (packet->flags & RST)
		flow->stage = 0;
}

static void choose_tcp(struct step *step, struct flow *flow, struct packet *packet)
{
	static const uint8_t flags[] = {SYN,	   SYN | ACK, ACK, RST, RST | ACK,
					FIN | ACK, PSH | ACK, FIN, 0};
	static const uint32_t offsets[] = {0, 0, 0, 100000, -100000u, 1u << 30};
	uint32_t *sequence;

	step->odd = flow->origin != HOST && random_chance(20);
	if (step->odd) {
		step->forward = random_chance(50);
		packet->flags = PICK(flags);
	} else if (flow->origin == HOST) {
		packet->flags = PSH | ACK;
	} else {
		choose_natural_tcp(step, flow, packet);
	}
	if (!(packet->flags & PSH))
		packet->size = 0;
	sequence = step->forward ? &flow->origin_sequence : &flow->peer_sequence;
	packet->sequence = *sequence + (step->odd ? PICK(offsets) : 0);
	if (!step->odd)
		*sequence += (uint32_t)packet->size + !!(packet->flags & (SYN | FIN));
}

static void invert(struct packet *packet, const struct packet *received)
{
	packet->source = received->destination;
	packet->destination = received->source;
	packet->source_port = received->destination_port;
	packet->destination_port = received->source_port;
}

/* A router of this network says it, or the receiver */
static void make_error(struct packet *packet, const struct packet *received, enum end from, bool router)
{
	uint8_t quote[MAX_PACKET];
	size_t size = packet_whole(received, quote), most = is_v4(&received->source) ? 28 : 200;

	invert(packet, received);
	packet->protocol = IPPROTO_ICMP;
	packet->source_port = packet->destination_port = 0;
	if (router && from < WEB)
		packet->source.s6_addr[15] = 99;
	packet->size = size < most ? size : most;
	memcpy(packet->payload, quote, packet->size);
}

/* What one world sends. False: nothing has arrived there that could be answered. */
static bool address_packet(const struct step *step, enum which_world which, struct packet *packet,
			   bool router)
{
	const struct flow *flow = step->flow;
	const struct view *view = &flow->views[which];
	bool ours = view->arrived && (view->at < WEB || end_of(&worlds[which], &view->forward.destination) == view->at);

	if (step->error && (step->forward ? !view->answered || flow->origin == HOST : !ours))
		return false;
	if (!step->forward && !ours)
		return false;
	if (step->error) {
		make_error(packet, step->forward ? &view->reply : &view->forward,
			   step->forward ? flow->origin : view->at, router);
		return true;
	}
	if (step->forward) {
		packet->source = flow->first.source;
		packet->destination = flow->first.destination;
		packet->source_port = flow->first.source_port;
		packet->destination_port = flow->first.destination_port;
	} else {
		invert(packet, &view->forward);
	}
	packet->acknowledged = packet->flags & ACK ? step->forward ? view->origin_expects
								   : view->peer_expects
						   : 0;
	return true;
}

/* The same cuts and the same order in both worlds */
static size_t choose_parts(struct part *parts, size_t whole, bool *all)
{
	size_t count = 0, cut = 0;

	*all = true;
	while (cut < whole && count < MAX_PARTS - 2) {
		size_t size = 8 + random_below(30) * 8;

		if (cut + size >= whole || count == MAX_PARTS - 3)
			size = whole - cut;
		parts[count++] = (struct part){cut, size, cut + size < whole};
		cut += size;
	}
	for (size_t i = count; i > 1; i--) {
		size_t other = random_below((unsigned)i);
		struct part kept = parts[i - 1];

		parts[i - 1] = parts[other];
		parts[other] = kept;
	}
	if (random_chance(10)) {
		count--;
		*all = false;
	}
	return count;
}

static void send_parts(const struct step *step, const struct part *parts, size_t count)
{
	for (int which = 0; which < WORLDS; which++) {
		const struct packet *packet = &step->sent[which];
		uint8_t transport[MAX_PACKET], bytes[MAX_PACKET + 60];
		size_t whole = packet_transport(packet, transport);
		enum end from = step->forward ? step->flow->origin : step->flow->views[which].at;

		if (!step->sends[which])
			continue;
		for (size_t i = 0; i < count; i++) {
			struct part part = count == 1 && step->whole ? (struct part){.size = whole}
								     : parts[i];

			world_send(&worlds[which], from, packet, bytes,
				   packet_part(packet, transport, whole, &part, bytes));
		}
	}
}

static void describe(struct step *step, size_t parts)
{
	enum which_world which = step->sends[OURS] ? OURS : REFERENCE;
	char text[PACKET_TEXT];

	snprintf(step->text, STEP_TEXT, "flow %d: %s sends %s, %zu bytes%s%s%s",
		 (int)(step->flow - flows),
		 end_names[step->forward ? step->flow->origin : step->flow->views[which].at],
		 packet_text(&step->sent[which], text), step->sent[which].size,
		 step->odd ? ", odd" : "", step->flow->forged ? ", forged" : "",
		 parts > 1 || !step->whole ? ", in fragments" : "");
}

static void send_raw(struct step *step)
{
	struct part parts[MAX_PARTS];
	uint8_t transport[MAX_PACKET];
	enum which_world which = step->sends[OURS] ? OURS : REFERENCE;
	const struct packet *packet = &step->sent[which];
	size_t whole = packet_transport(packet, transport), count = 1;

	step->whole = true;
	if (!step->error && packet->protocol != IPPROTO_TCP && whole > 64 && random_chance(25))
		count = choose_parts(parts, whole, &step->whole);
	describe(step, count);
	send_parts(step, parts, count);
}

static void send_from_host(struct step *step, bool begins)
{
	struct flow *flow = step->flow;
	char text[PACKET_TEXT];

	snprintf(step->text, STEP_TEXT, "flow %d: host's socket%s%s %s %s, %zu bytes",
		 (int)(flow - flows), flow->binds ? ", bound" : "", flow->connects ? ", connected" : "",
		 begins ? "begins" : "sends", packet_text(&step->sent[OURS], text),
		 step->sent[OURS].size);
	for (int which = 0; which < WORLDS; which++) {
		if (begins)
			host_begin(flow, (enum which_world)which, step);
		else if (flow->first.protocol == IPPROTO_UDP || flow->views[which].connected)
			host_send(flow, (enum which_world)which, step);
	}
}

static void choose_packet(struct step *step, struct packet *packet)
{
	struct flow *flow = step->flow;

	packet->protocol = flow->first.protocol;
	packet->id = (uint16_t)(step->number + 1);
	packet->ttl = 64;
	packet->tos = TOS;
	packet->size = 16 + random_below(random_chance(30) ? 1200 : 60);
	for (size_t i = 0; i < packet->size; i++)
		packet->payload[i] = (uint8_t)random_below(256);
	step->forward = random_chance(55);
	if (packet->protocol == IPPROTO_TCP)
		choose_tcp(step, flow, packet);
	if (random_chance(6)) {
		static const enum icmp_kind errors[] = {ICMP_PORT_UNREACHABLE, ICMP_TIME_EXCEEDED,
							ICMP_TOO_BIG};

		step->error = true;
		packet->icmp = PICK(errors);
		step->forward = random_chance(30);
	} else if (packet->protocol == IPPROTO_ICMP) {
		packet->icmp = step->forward ? ICMP_REQUEST : ICMP_REPLY;
	}
}

void step_make(struct step *step)
{
	struct flow *flow = &flows[random_below(FLOWS)];
	bool begins, opens = random_chance(15), router;
	struct packet packet = {0};

	if (flow->quarantined)
		return;
	begins = !flow->used || opens;
	if (begins)
		open_flow(flow);
	if (!flow->used)
		return;
	step->flow = flow;
	choose_packet(step, &packet);
	router = random_chance(50);
	if (begins && !step->forward) {
		step->forward = true;
		packet.icmp = packet.icmp ? ICMP_REQUEST : ICMP_NONE;
	}
	if (begins)
		step->error = false;
	for (int which = 0; which < WORLDS; which++) {
		step->sent[which] = packet;
		step->sends[which] = address_packet(step, (enum which_world)which, &step->sent[which], router);
	}
	if (!step->sends[REFERENCE] && !step->sends[OURS])
		return;
	if (step->forward && flow->origin == HOST)
		send_from_host(step, begins);
	else
		send_raw(step);
}
