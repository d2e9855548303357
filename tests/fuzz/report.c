/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* report.c - packets, maps and expectations as text. */
#include "report.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static const char *text_of(const uint8_t *address)
{
	static char texts[8][INET6_ADDRSTRLEN];
	static int next;
	char *text = texts[next++ % 8];

	if (address_is_ipv4(address))
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
	static const char *const kinds[] = {"never translated", "opaque", "a later fragment",
					    "of a flow", "an error"};
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

static const char *ports_of(const struct connection_key *key)
{
	static char texts[4][128];
	static int next;
	char *text = texts[next++ % 4];

	snprintf(text, sizeof(texts[0]), "protocol %d inside %s:%u outside %s:%u",
		 (int)key->protocol, text_of(key->inside), key->inside_port, text_of(key->outside),
		 key->outside_port);
	return text;
}

static void report_record(const struct world_connection *record)
{
	const struct connection *value = &record->value;

	printf(" %s: external %s:%u peer %u, kind %u state 0x%x%s, owner %u/%u id %x place %u "
	       "packets %u %u seen %u tcp %x/%x %x/%x, left %u %u path %u %u",
	       ports_of(&record->key), text_of(value->external_address), value->external_port,
	       value->peer_port, value->kind, value->state,
	       value->begun_inside ? " begun inside" : "", value->owner.slot,
	       value->owner.generation, value->id, value->place, value->packets[0],
	       value->packets[1], value->last_seen, value->tcp[0].sequence_end,
	       value->tcp[0].acknowledged, value->tcp[1].sequence_end, value->tcp[1].acknowledged,
	       value->left_stack[0], value->left_stack[1], value->path[0], value->path[1]);
}

void report_packet(const struct visit *visit, const struct expectation *expected,
		   const struct outcome *outcome)
{
	static const char *const answers[] = {"pass", "drop", "translate", "lift", "hold"};

	printf("%s at %u, came in by %u\n", machine_hook_name(visit->hook), visit->device,
	       visit->came_in_by);
	report_frame("in", &visit->frame);
	printf("expected: %s (%s)%s, choice %d, redirect %u%s\n", answers[expected->answer],
	       expected->because, expected->unsure ? ", unsure" : "", expected->choice,
	       expected->redirect, expected->begins ? ", a new connection" : "");
	if (expected->takes)
		printf(" rewritten to %s:%u peer %u\n", text_of(expected->rewrite.address),
		       expected->rewrite.port, expected->rewrite.peer_port);
	if (expected->begins) {
		printf(" begun");
		report_record(&expected->begun);
		printf("\n");
	}
	for (int i = 0; i < expected->touch_count && i < TOUCHES; i++) {
		struct world_connection after = {.key = expected->touches[i].key,
						 .value = expected->touches[i].after};

		printf(expected->touches[i].ends ? " ends" : " becomes");
		report_record(&after);
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
	printf("policy %u/%u: max_flows %u masquerade_all %u keep_hairpin_source %u sources %u %u",
	       policy->owner.slot, policy->owner.generation, policy->max_flows,
	       policy->masquerade_all, policy->keep_hairpin_source, policy->source4_count,
	       policy->source6_count);
	report_ranges("unmasqueraded", policy->unmasqueraded, policy->unmasqueraded_count);
	report_ranges("source", policy->source_ranges, policy->source_range_count);
	report_ranges("excluded", policy->excluded, policy->excluded_count);
	printf(" ports %u-%u\n", policy->masquerade_ports[0].first,
	       policy->masquerade_ports[0].last);
}

static void report_tables(const struct world *world)
{
	printf("places %u %u, hands %u %u, assured %u hogs %u, now %u\n",
	       world_places(world)->half_open_places, world_places(world)->assured_places,
	       world->usage.half_open_hand, world->usage.assured_hand, world->usage.assured,
	       world->usage.hogs, world->now);
	for (int i = 0; i < WORLD_SLOTS; i++)
		printf("share %d/%u: in %u out %u, TCP in %u out %u, half-open %u, own %u\n", i,
		       world->shares[i].generation, world->shares[i].flows[0],
		       world->shares[i].flows[1], world->shares[i].flows[2],
		       world->shares[i].flows[3], world->shares[i].half_open[0],
		       world->shares[i].half_open[1]);
	for (int i = 0; i < world->connection_count; i++) {
		const struct world_connection *record = &world->connections[i];

		report_record(record);
		printf(", %s, idle %d\n", record_lives(world, record) ? "live" : "dead",
		       (int)(world->now - record->value.last_seen));
	}
	for (int i = 0; i < world->alias_count; i++)
		printf(" alias %s: inside %s:%u outside port %u id %x owner %u, %u s old\n",
		       ports_of(&world->aliases[i].key), text_of(world->aliases[i].value.inside),
		       world->aliases[i].value.inside_port, world->aliases[i].value.outside_port,
		       world->aliases[i].value.id, world->aliases[i].value.owner.slot,
		       world->now - world->aliases[i].value.made);
	for (uint32_t i = 1; i <= world_places(world)->half_open_places; i++)
		if (world->half_open[i].id)
			printf(" half-open place %u: id %x slot %u\n", i, world->half_open[i].id,
			       world->half_open[i].slot);
}

void report_world(const struct world *world)
{
	for (uint32_t i = 1; i < WORLD_SLOTS; i++)
		printf("slot %u: generation %u live %u%s%s, interface %u\n", i,
		       world->slots[i].generation, world->slots[i].live,
		       world->slots[i].has_policy ? " policy" : "",
		       world->veth_gone[i] ? " without veth" : "", world->slots[i].ifindex);
	for (uint32_t i = 1; i < WORLD_SLOTS; i++)
		if (world->has_policy[i])
			report_policy(&world->policies[i]);
	for (int i = 0; i < WORLD_ENDPOINTS; i++)
		if (world->endpoints[i].present)
			printf("endpoint %s/%u owner %u/%u masquerade %u strict %u\n",
			       text_of(world->endpoints[i].key.address),
			       world->endpoints[i].value.prefix_length,
			       world->endpoints[i].value.owner.slot,
			       world->endpoints[i].value.owner.generation,
			       world->endpoints[i].value.masquerade,
			       world->endpoints[i].value.strict);
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
	report_tables(world);
}

void report_changes(const struct world *before, const struct world *after)
{
	printf("-- now:\n");
	report_tables(after);
	for (int i = 0; i < WORLD_SLOTS; i++)
		if (memcmp(&before->shares[i], &after->shares[i], sizeof(before->shares[i])))
			printf("share %d has changed\n", i);
}
