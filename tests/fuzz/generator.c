/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* generator.c - the next packet: a new one, or an answer to or an error about an earlier one. */
#include "generator.h"

#include <netinet/in.h>
#include <string.h>

#include "../packet/host.h"
#include "craft.h"
#include "pools.h"
#include "random.h"

static uint8_t random_flags(void)
{
	static const uint8_t flags[] = {SYN,       SYN, SYN,       SYN | ACK, ACK, ACK,
					ACK | FIN, RST, RST | ACK, SYN | FIN, 0xff};

	return random_one_in(16) ? (uint8_t)random_number() : RANDOM_OF(flags);
}

static uint8_t random_protocol(bool v4)
{
	static const uint8_t portless[] = {IPPROTO_GRE, IPPROTO_ESP, IPPROTO_IPIP};
	static const uint8_t protocols[] = {IPPROTO_TCP, IPPROTO_TCP,  IPPROTO_TCP,    IPPROTO_UDP,
					    IPPROTO_UDP, IPPROTO_SCTP, IPPROTO_UDPLITE};

	if (random_one_in(40))
		return (uint8_t)random_number();
	if (random_one_in(8))
		return RANDOM_OF(portless);
	if (random_one_in(5))
		return v4 ? IPPROTO_ICMP : IPPROTO_ICMPV6;
	return RANDOM_OF(protocols);
}

static void any_address(uint8_t *address, bool v4)
{
	switch (random_below(3)) {
	case 0:
		pool_container(address, (int)random_below(POOL_CONTAINERS), v4);
		break;
	case 1:
		pool_host(address, v4);
		break;
	default:
		pool_outside(address, v4);
	}
}

static void craft_new(struct craft *craft)
{
	bool v4 = random_below(2);

	any_address(craft->source, v4);
	any_address(craft->destination, v4);
	craft->source_port = pool_port();
	craft->destination_port = pool_port();
	craft->protocol = random_protocol(v4);
	craft->echo_reply = random_one_in(3);
}

/* A packet of the connection: inwards as seen outside, outwards as seen inside. */
static void craft_of_record(struct craft *craft, const struct world_connection *record, bool in)
{
	const struct connection_key *key = &record->key;

	memcpy(in ? craft->source : craft->destination, key->outside, 16);
	memcpy(in ? craft->destination : craft->source,
	       in ? record->value.external_address : key->inside, 16);
	craft->source_port = in ? record->value.peer_port : key->inside_port;
	craft->destination_port = in ? record->value.external_port : key->outside_port;
	craft->protocol = key->protocol;
	craft->echo_reply = craft->destination_port && !craft->source_port;
}

/* False: the frame has no tuple. */
static bool craft_of_frame(struct craft *craft, const struct frame *frame, bool answer)
{
	struct wire wire;
	const struct wire_header *outer = &wire.outer;

	wire_read(frame, &wire);
	if (wire.kind != WIRE_FLOW)
		return false;
	memcpy(craft->source, answer ? outer->destination : outer->source, 16);
	memcpy(craft->destination, answer ? outer->source : outer->destination, 16);
	craft->source_port = answer ? outer->destination_port : outer->source_port;
	craft->destination_port = answer ? outer->source_port : outer->destination_port;
	craft->protocol = outer->protocol;
	craft->echo_reply = outer->echo_reply != answer;
	return true;
}

/* An error about the frame, from its receiver or a router. */
static bool craft_error(struct craft *craft, const struct frame *about)
{
	if (about->length <= 14 || !craft_of_frame(craft, about, true))
		return false;
	if (random_one_in(3))
		any_address(craft->source, address_is_ipv4(craft->destination));
	craft->protocol = address_is_ipv4(craft->source) ? IPPROTO_ICMP : IPPROTO_ICMPV6;
	craft->about = about;
	return true;
}

/* An error about a packet that was never sent, but would belong to a known connection. */
static bool craft_error_of_record(struct craft *craft, const struct world_connection *record,
				  bool in)
{
	static struct frame quoted;
	struct craft imagined = {.tcp_flags = random_flags()};
	struct frame answer;

	craft_of_record(&imagined, record, in);
	craft_frame(&answer, &imagined);
	if (!craft_of_frame(&imagined, &answer, true))
		return false;
	craft_frame(&quoted, &imagined);
	return craft_error(craft, &quoted);
}

static const struct passage *earlier(const struct history *history)
{
	int known = history->count < HISTORY ? history->count : HISTORY;

	return &history->passages[random_below((uint32_t)known)];
}

static bool craft_from_before(struct craft *craft, const struct history *history, uint32_t how)
{
	const struct passage *passage = earlier(history);
	const struct frame *last = passage->out.length ? &passage->out : &passage->in;

	switch (how) {
	case 0:
	case 1:
		return craft_of_frame(craft, last, true);
	case 2:
		return craft_of_frame(craft, &passage->in, false);
	case 3:
		return craft_of_frame(craft, last, false);
	default:
		return craft_error(craft, random_below(2) ? last : &passage->in);
	}
}

/* A packet that begins a flow: to a published port, or from a container. */
static void craft_beginning(const struct world *world, struct craft *craft)
{
	const struct portmap_key *key;
	bool v4 = random_below(2);

	craft_new(craft);
	if (world->portmap_count && random_below(2)) {
		key = &world->portmaps[random_below((uint32_t)world->portmap_count)].key;
		v4 = address_is_ipv4(key->host_address);
		pool_host(craft->destination, v4);
		if (random_below(2) && world_route(key->host_address) == 0)
			memcpy(craft->destination, key->host_address, 16);
		craft->destination_port = key->host_port;
		craft->protocol = key->protocol;
		pool_outside(craft->source, v4);
	} else {
		pool_container(craft->source, (int)random_below(4), v4);
		pool_outside(craft->destination, v4);
		craft->protocol = random_protocol(v4);
		if (world->crowded) {
			world_address(craft->destination, v4 ? v4_server : v6_server);
			craft->destination_port = 80;
		}
	}
}

/* In a busy world mostly one whose next packet may make it assured. */
static const struct world_connection *choose_record(const struct world *world, bool *in)
{
	const struct world_connection *record = NULL;

	for (int tries = world->busy ? 6 : 1; tries; tries--) {
		record = &world->connections[random_below((uint32_t)world->connection_count)];
		*in = random_below(2);
		if ((record->value.state & (STATE_REPLIED | STATE_ASSURED)) == STATE_REPLIED) {
			*in = random_one_in(4) == record->value.begun_inside;
			break;
		}
	}
	return record;
}

static void choose_tuple(const struct world *world, const struct history *history,
			 struct craft *craft, struct visit *visit)
{
	uint32_t how = random_below(14);
	bool in = false;

	visit->hook = HOOKS;
	if (how < 6 && history->count && craft_from_before(craft, history, how))
		return;
	if (how > 6 && how < 11 && world->connection_count) {
		const struct world_connection *record = choose_record(world, &in);

		visit->hook = in ? FROM_UPLINK : TO_UPLINK;
		if (how == 10 && craft_error_of_record(craft, record, in))
			return;
		craft->about = NULL;
		craft_of_record(craft, record, in);
		return;
	}
	memset(craft, 0, sizeof(*craft));
	if (how > 6)
		craft_beginning(world, craft);
	else
		craft_new(craft);
}

static void enter_by(struct visit *visit, const struct craft *craft)
{
	int container = pool_container_of(craft->source);

	if (container == 4) {
		visit->hook = FROM_BRIDGE;
		visit->device = BRIDGE;
	} else if (container >= 0) {
		visit->hook = FROM_CONTAINER;
		visit->device = pool_device_of_container(container);
	} else {
		visit->hook = FROM_UPLINK;
		visit->device = random_one_in(4) ? SECOND_UPLINK : UPLINK;
	}
	visit->came_in_by = visit->device;
}

static void leave_by(struct visit *visit, const struct craft *craft)
{
	int container = pool_container_of(craft->source);

	visit->device = world_route(craft->destination);
	if (!visit->device || random_one_in(16))
		visit->device = random_below(2) ? UPLINK : BRIDGE;
	visit->hook =
		visit->device == BRIDGE || visit->device == VETH_ROUTED ? TO_CONTAINER : TO_UPLINK;
	visit->came_in_by = UPLINK;
	if (container >= 0)
		visit->came_in_by = container == 3 ? VETH_ROUTED : BRIDGE;
	else if (world_route(craft->source) == 0 || random_one_in(8))
		visit->came_in_by = 0;
}

/* Mostly a hook where such a packet would be seen. */
static void choose_hook(struct visit *visit, const struct craft *craft)
{
	static const uint32_t devices[] = {UPLINK,     SECOND_UPLINK, BRIDGE,       VETH_ONE,
					   VETH_QUIET, VETH_ROUTED,   VETH_DELETED, UNCLASSIFIED};
	bool out = visit->hook == HOOKS ? random_below(2) : visit->hook == TO_UPLINK;

	if (random_one_in(24)) {
		visit->hook = (enum hook)random_below(HOOKS);
		visit->device = RANDOM_OF(devices);
		/* from_container goes by it: it may be attached behind the veth. */
		visit->came_in_by =
			visit->hook == FROM_CONTAINER ? visit->device : random_below(2) * UPLINK;
	} else if (out) {
		leave_by(visit, craft);
	} else {
		enter_by(visit, craft);
	}
}

static void write_macs(struct visit *visit)
{
	const uint8_t *next_hop = world_next_hop(visit->wire.outer.destination);
	static const uint8_t others[][MAC_SIZE] = {
		{2, 0, 0, 0, 9, 9}, {255, 255, 255, 255, 255, 255}, {1, 0, 0x5e, 0, 0, 1}};
	bool port = visit->hook == FROM_CONTAINER && visit->device != VETH_ROUTED;
	const uint8_t *to = host_mac(port ? BRIDGE : (enum device)visit->device);

	if (next_hop && (visit->hook == TO_UPLINK || visit->hook == TO_CONTAINER))
		to = next_hop;
	if (random_one_in(12))
		to = RANDOM_OF(others);
	else if (random_one_in(port ? 4 : 12))
		to = host_container_two_mac();
	memcpy(visit->frame.bytes, to, MAC_SIZE);
	memcpy(visit->frame.bytes + MAC_SIZE, "\2\0\0\0\7\7", MAC_SIZE);
}

void generator_visit(const struct world *world, const struct history *history, struct visit *visit)
{
	struct craft craft = {0};

	memset(visit, 0, sizeof(*visit));
	choose_tuple(world, history, &craft, visit);
	craft.tcp_flags = random_flags();
	choose_hook(visit, &craft);
	if (visit->hook == TO_UPLINK || visit->hook == TO_CONTAINER)
		visit->verified = !random_one_in(visit->came_in_by == UPLINK ? 2 : 12);
	craft_frame(&visit->frame, &craft);
	wire_read(&visit->frame, &visit->wire);
	write_macs(visit);
	if (random_one_in(6))
		craft_spoil(&visit->frame);
	if (random_one_in(40))
		craft_tag(&visit->frame);
	wire_read(&visit->frame, &visit->wire);
}
