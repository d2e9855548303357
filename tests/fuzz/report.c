/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* report.c - packets, maps and expectations as text. */
#include "report.h"

#include <arpa/inet.h>
#include <stdio.h>

static const char *text_of(const uint8_t *address)
{
	static char texts[8][INET6_ADDRSTRLEN];
	static int next;
	char *text = texts[next++ % 8];

	if (wire_is_ipv4(address))
		inet_ntop(AF_INET, address + 12, text, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, address, text, INET6_ADDRSTRLEN);
	return text;
}

static void report_header(const char *what, const struct wire_header *header)
{
	printf("  %s protocol %u %s:%u -> %s:%u, transport at %zu\n", what, header->protocol,
	       text_of(header->source), header->source_port, text_of(header->destination),
	       header->destination_port, header->transport);
}

static void report_frame(const char *what, const struct frame *frame)
{
	static const char *const kinds[] = {"no business of ours", "opaque", "a later fragment",
					    "a flow's", "an error"};
	struct wire wire;

	wire_read(frame, &wire);
	printf("%s: %zu bytes, %s, flags 0x%02x\n", what, frame->length, kinds[wire.kind],
	       wire.tcp_flags);
	report_header("outer", &wire.outer);
	if (wire.kind == WIRE_ERROR)
		report_header("quoted", &wire.quoted);
	for (size_t i = 0; i < frame->length; i++)
		printf("%02x%s", frame->bytes[i], i % 32 == 31 ? "\n" : "");
	printf("\n");
}

static void report_flow(const struct flow_key *key, const struct flow *flow)
{
	printf(" %s protocol %u %s:%u -> %s:%u: %s:%u peer %u, kind %u state %u reply %u, owner "
	       "%u/%u",
	       key->direction == DIRECTION_IN ? "in" : "out", key->protocol, text_of(key->source),
	       key->source_port, text_of(key->destination), key->destination_port,
	       text_of(flow->address), flow->port, flow->peer_port, flow->kind, flow->state,
	       flow->reply, flow->owner.slot, flow->owner.generation);
}

void report_packet(const struct visit *visit, const struct expectation *expected,
		   const struct outcome *outcome)
{
	static const char *const answers[] = {"pass", "drop", "translate", "lift", "hold"};

	printf("%s at %u, came in by %u\n", machine_hook_name(visit->hook), visit->device,
	       visit->came_in_by);
	report_frame("in", &visit->frame);
	printf("expected: %s (%s), choice %d, redirect %u%s\n", answers[expected->answer],
	       expected->because, expected->choice, expected->redirect,
	       expected->begins_flow ? ", a new flow" : "");
	if (expected->takes_flow) {
		printf(" flow");
		report_flow(&expected->key, &expected->flow);
		printf("\n");
	}
	report_frame("expected", &outcome->expected);
	printf("got verdict %d\n", outcome->verdict);
	report_frame("got", &outcome->frame);
}

static void report_ranges(const char *what, const struct address_range *ranges, int count)
{
	for (int i = 0; i < count; i++)
		printf(" %s %s%s/%u", what, ranges[i].exception ? "!" : "",
		       text_of(ranges[i].address), ranges[i].prefix_length);
}

static void report_policy(const struct policy *policy)
{
	printf("policy %u/%u: masquerade_all %u keep_hairpin_source %u sources %u %u",
	       policy->owner.slot, policy->owner.generation, policy->masquerade_all,
	       policy->keep_hairpin_source, policy->source4_count, policy->source6_count);
	report_ranges("unmasqueraded", policy->unmasqueraded, policy->unmasqueraded_count);
	report_ranges("source", policy->source_ranges, policy->source_range_count);
	report_ranges("excluded", policy->excluded, policy->excluded_count);
	printf(" ports %u-%u\n", policy->masquerade_ports[0].first,
	       policy->masquerade_ports[0].last);
}

void report_world(const struct world *world)
{
	for (uint32_t i = 1; i < WORLD_SLOTS; i++)
		printf("slot %u: generation %u live %u\n", i, world->slots[i].generation,
		       world->slots[i].live);
	for (uint32_t i = 1; i < WORLD_SLOTS; i++)
		if (world->has_policy[i])
			report_policy(&world->policies[i]);
	for (int i = 0; i < WORLD_ENDPOINTS; i++)
		if (world->endpoints[i].present)
			printf("endpoint %s/%u owner %u/%u masquerade %u\n",
			       text_of(world->endpoints[i].key.address),
			       world->endpoints[i].value.prefix_length,
			       world->endpoints[i].value.owner.slot,
			       world->endpoints[i].value.owner.generation,
			       world->endpoints[i].value.masquerade);
	for (int i = 0; i < WORLD_INTERFACES; i++)
		if (world->interfaces[i].present)
			printf("interface %u role %u owner %u/%u\n", world->interfaces[i].ifindex,
			       world->interfaces[i].value.role,
			       world->interfaces[i].value.owner.slot,
			       world->interfaces[i].value.owner.generation);
	for (int i = 0; i < world->portmap_count; i++)
		printf("portmap protocol %u %s:%u -> %s:%u owner %u/%u\n",
		       world->portmaps[i].key.protocol,
		       text_of(world->portmaps[i].key.host_address),
		       world->portmaps[i].key.host_port,
		       text_of(world->portmaps[i].value.container_address),
		       world->portmaps[i].value.container_port, world->portmaps[i].value.owner.slot,
		       world->portmaps[i].value.owner.generation);
	for (int i = 0; i < MASQUERADE_RANGES; i++)
		if (world->ranges[i].last)
			printf("masquerade ports %u-%u\n", world->ranges[i].first,
			       world->ranges[i].last);
	printf("fragment: fate %u newest %u idle %d\n", world->fragment.fate,
	       world->fragment.newest, (int)(world->now - world->fragment.last_seen));
	for (int i = 0; i < world->flow_count; i++) {
		const struct world_flow *flow = &world->flows[i];

		printf("%s", flow->table == NEW ? "flows_new" : "flows");
		report_flow(&flow->key, &flow->value);
		printf(", %s, idle %d\n", world_flow_live(world, flow) ? "live" : "dead",
		       (int)(world->now - flow->value.last_seen));
	}
}
