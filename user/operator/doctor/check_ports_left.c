/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* check_ports_left.c - ports that masqueraded connections may leave with: towards one port of one
 * server each can be used once. */
#include <stdlib.h>
#include <string.h>

#include "datapath/load/maps.h"
#include "lib/memory.h"
#include "lib/cleanup.h"
#include "lib/ports.h"
#include "operator/doctor/doctor.h"

#define FULL_PERCENT 80

/* A connection's place in the count. Ordered by its bytes, those of one server follow one another,
 * and among them those of one container. */
struct use {
	uint8_t external[CNI_ADDRESS_SIZE], server[CNI_ADDRESS_SIZE];
	uint32_t ports; /* how many its container may have */
	uint16_t port;
	uint8_t protocol, reserved;
	struct owner owner;
};

#define SAME_SERVER offsetof(struct use, owner)

struct uses {
	struct use *list;
	size_t count;
};

static uint32_t count_ports(const struct port_range ranges[MASQUERADE_RANGES])
{
	uint32_t count = 0;

	for (int i = 0; i < MASQUERADE_RANGES; i++)
		count += ranges[i].last ? ranges[i].last - ranges[i].first + 1U : 0;
	return count;
}

static uint32_t ports_of(const struct objects *objects, struct owner owner)
{
	struct policy policy;
	struct meta meta;

	if (policy_read(objects, owner, &policy) && policy.masquerade_ports[0].last)
		return count_ports(policy.masquerade_ports);
	return meta_read(objects, &meta) ? count_ports(meta.masquerade_ports) : 0;
}

/* The fewest ports that a container may have. */
static uint32_t fewest_ports(const struct objects *objects)
{
	cleanup_walk struct map_walk walk = {.objects = objects, .map = MAP_POLICIES};
	uint32_t fewest = ports_of(objects, (struct owner){0}), ports;

	while (map_next(&walk, NULL)) {
		ports = count_ports(((const struct policy *)walk.value)->masquerade_ports);
		fewest = ports && ports < fewest ? ports : fewest;
	}
	return fewest;
}

static bool is_full(uint64_t used, uint32_t ports)
{
	return ports && used * 100 >= (uint64_t)ports * FULL_PERCENT;
}

/* The programs' own counters say whether it can be, which saves reading the connections. */
static bool may_be_full(const struct objects *objects)
{
	cleanup_walk struct map_walk walk = {.objects = objects, .map = MAP_PORT_SHARES};
	uint32_t fewest = fewest_ports(objects);

	while (map_next(&walk, NULL))
		if (is_full(((const struct port_share *)walk.value)->ports, fewest))
			return true;
	return false;
}

/* Others give way to whoever needs a port. */
static void add_use(struct doctor *doctor, struct uses *uses, const struct connection_key *key,
		    const struct connection *connection)
{
	struct use *use;

	if (connection->kind != FLOW_MASQUERADE || !(connection->state & STATE_ASSURED) ||
	    (key->protocol != PROTOCOL_TCP && key->protocol != PROTOCOL_UDP) ||
	    !view_is_alive(&doctor->view, key, connection))
		return;
	use = ARRAY_ADD(uses->list, uses->count);
	*use = (struct use){.ports = ports_of(&doctor->host.datapath.objects, connection->owner),
			    .port = connection->peer_port,
			    .protocol = (uint8_t)key->protocol,
			    .owner = connection->owner};
	memcpy(use->external, connection->external_address, CNI_ADDRESS_SIZE);
	memcpy(use->server, key->outside, CNI_ADDRESS_SIZE);
}

static int compare(const void *one, const void *other)
{
	return memcmp(one, other, sizeof(struct use));
}

/* The container that has most of them. */
static const char *fullest_container(struct doctor *doctor, const struct use *uses, size_t count)
{
	size_t most = 0, best = 0;
	const struct container_info *container;

	for (size_t i = 0, begin = 0; i < count; i++) {
		begin = owner_is(uses[i].owner, uses[begin].owner) ? begin : i;
		if (i - begin >= most) {
			most = i - begin;
			best = i;
		}
	}
	container = view_container(&doctor->view, uses[best].owner);
	return container ? container->text : "a container that is gone";
}

static void judge_server(struct doctor *doctor, const struct use *uses, size_t count)
{
	char server[ENDPOINT_TEXT_SIZE], external[CNI_ADDRESS_TEXT_SIZE];

	if (!is_full(count, uses->ports))
		return;
	format_endpoint(uses->server, uses->port, server);
	doctor_found(
		doctor, VERDICT_WARN, NULL,
		"%zu of %u ports (\"masqPorts\") of %s are in use towards %s/%s, most of them by"
		" %s: when all are, no more connections to it are made",
		count, uses->ports, cni_address_format(uses->external, external), server,
		protocol_word(uses->protocol), fullest_container(doctor, uses, count));
}

void check_ports_left(struct doctor *doctor)
{
	const struct objects *objects = &doctor->host.datapath.objects;
	cleanup_walk struct map_walk walk = {.objects = objects, .map = MAP_CONNECTIONS};
	cleanup_error struct cni_error err = {0};
	struct uses uses = {0};

	if (!may_be_full(objects))
		return;
	while (map_next(&walk, &err))
		add_use(doctor, &uses, walk.key, walk.value);
	if (walk.failed)
		doctor_found(doctor, VERDICT_COULD_NOT_LOOK, NULL, "%s", cni_error_message(&err));
	if (uses.count)
		qsort(uses.list, uses.count, sizeof(*uses.list), compare);
	for (size_t i = 0, begin = 0; i < uses.count; i++)
		if (i + 1 == uses.count ||
		    memcmp(&uses.list[i + 1], &uses.list[begin], SAME_SERVER) != 0) {
			judge_server(doctor, &uses.list[begin], i + 1 - begin);
			begin = i + 1;
		}
	free(uses.list);
}
