/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* measured.c - loads the programs and fills their maps as ADD and traffic would. */
#include "measured.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <err.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "programs.h"

#define GENERATION 40
#define BATCH 2048 /* flows: two entries each */

enum { SLOT_CONTAINER = 1, SLOT_QUIET = 2 };

static const struct {
	const char *ipv4, *ipv6;
	int mapping_port, masquerade_port, other_port;
} sides[] = {
	[PEER] = {"198.18.0.0", "2001:db8:99::", PEER_PORT(0), PEER_PORT(0), PEER_PORT(0)},
	[HOST] = {v4_host, v6_host, 8080, 25000, 22},
	[CONTAINER] = {v4_container_one, v6_container_one, 80, 25000, 5432},
	[QUIET] = {v4_container_quiet, v6_container_quiet, 80, 25000, 5432},
	[ELSEWHERE] = {v4_elsewhere, v6_elsewhere, 443, 443, 443},
};

const char *side_address(enum side side, bool ipv6)
{
	return ipv6 ? sides[side].ipv6 : sides[side].ipv4;
}

int side_port(enum side side, const struct world *world)
{
	switch (world->population) {
	case MAPPINGS:
	case FAST_MAPPINGS:
		return sides[side].mapping_port;
	case MASQUERADES:
	case FAST_MASQUERADES:
		return sides[side].masquerade_port;
	default:
		return sides[side].other_port;
	}
}

static void parse_address(uint8_t *address, const char *text)
{
	memset(address, 0, 16);
	if (inet_pton(AF_INET6, text, address) == 1)
		return;
	memset(address + 10, 0xff, 2);
	if (inet_pton(AF_INET, text, address + 12) != 1)
		errx(1, "not an address: %s", text);
}

static int map_fd(const struct bpf_object *object, const char *name)
{
	int fd = bpf_object__find_map_fd_by_name(object, name);

	if (fd < 0)
		errx(1, "the object has no map %s", name);
	return fd;
}

static void update(const struct bpf_object *object, const char *map, const void *key,
		   const void *value)
{
	if (bpf_map_update_elem(map_fd(object, map), key, value, BPF_ANY))
		err(1, "writing to map %s", map);
}

static struct owner owner_of(uint32_t slot)
{
	return (struct owner){.slot = slot, .generation = slot ? GENERATION : 0};
}

static void add_interface(const struct bpf_object *object, enum device device,
			  enum interface_role role, uint32_t slot)
{
	struct interface interface = {.owner = owner_of(slot), .role = role};
	uint32_t ifindex = device;

	if (role == ROLE_PORT) {
		interface.bridge_ifindex = BRIDGE;
		memcpy(interface.bridge_mac, host_mac(BRIDGE), sizeof(interface.bridge_mac));
	}
	update(object, "interfaces", &ifindex, &interface);
}

static void add_endpoint(const struct bpf_object *object, const char *address, uint32_t slot)
{
	struct endpoint endpoint = {.owner = owner_of(slot), .masquerade = slot == SLOT_CONTAINER};
	struct endpoint_key key;

	parse_address(key.address, address);
	endpoint.prefix_length = strchr(address, ':') ? 64 : 16;
	update(object, "endpoints", &key, &endpoint);
}

static bool is_fast(const struct world *world)
{
	return world->population == FAST_MAPPINGS || world->population == FAST_MASQUERADES;
}

static void add_container(const struct bpf_object *object, uint32_t number, enum device veth,
			  enum side side, bool fast)
{
	struct slot slot = {.generation = GENERATION, .live = 1, .ifindex = veth};

	slot.fast_path = fast ? FAST_PATH_ESTABLISHED : FAST_PATH_OFF;
	memcpy(slot.host_mac, host_mac(veth), sizeof(slot.host_mac));
	memcpy(slot.gateway_mac, host_mac(BRIDGE), sizeof(slot.gateway_mac));
	slot.container = number;
	/* Objects of layout 1 have none. */
	if (bpf_object__find_map_by_name(object, "veths"))
		update(object, "veths", &number, &slot.ifindex);
	update(object, "slots", &number, &slot);
	add_interface(object, veth, ROLE_PORT, number);
	add_endpoint(object, sides[side].ipv4, number);
	add_endpoint(object, sides[side].ipv6, number);
}

static void add_mapping(const struct bpf_object *object, const char *host, enum protocol protocol,
			const char *container)
{
	struct portmap_key key = {.protocol = protocol,
				  .host_port = (uint16_t)sides[HOST].mapping_port};
	struct portmap portmap = {.owner = owner_of(SLOT_CONTAINER)};
	uint32_t word = key.host_port / 64;
	uint64_t bits = 1ULL << key.host_port % 64;

	parse_address(key.host_address, host);
	parse_address(portmap.container_address, container);
	portmap.container_port = (uint16_t)sides[CONTAINER].mapping_port;
	update(object, "published_ports", &word, &bits);
	update(object, "portmaps", &key, &portmap);
}

static void fill_small_maps(const struct bpf_object *object, const struct world *world)
{
	struct meta meta = {.layout = LAYOUT, .complete = 1, .masquerade_ports = {{1024, 32767}}};
	struct noticed noticed = {0};
	uint32_t only = 0;

	update(object, "meta", &only, &meta);
	noticed.masquerade_ports[sides[HOST].masquerade_port / 64] =
		1ULL << sides[HOST].masquerade_port % 64;
	update(object, "noticed", &only, &noticed);
	add_interface(object, UPLINK, ROLE_UPLINK, 0);
	add_interface(object, SECOND_UPLINK, ROLE_UPLINK, 0);
	add_interface(object, BRIDGE, ROLE_BRIDGE, 0);
	add_container(object, SLOT_CONTAINER, VETH_ONE, CONTAINER, is_fast(world));
	add_container(object, SLOT_QUIET, VETH_QUIET, QUIET, is_fast(world));
	for (int i = 0; i < 2; i++) {
		enum protocol protocol = i ? PROTOCOL_TCP : PROTOCOL_UDP;

		add_mapping(object, "0.0.0.0", protocol, sides[CONTAINER].ipv4);
		add_mapping(object, "::", protocol, sides[CONTAINER].ipv6);
	}
}

static uint32_t seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint32_t)now.tv_sec;
}

struct halves {
	struct flow_key keys[2];
	struct flow flows[2];
};

/* What all flows have in common. */
static void begin_halves(struct halves *halves, const struct world *world)
{
	struct flow_key *in = &halves->keys[0], *out = &halves->keys[1];
	bool mapping = world->population == MAPPINGS || world->population == FAST_MAPPINGS;
	uint32_t now = seconds_now();

	memset(halves, 0, sizeof(*halves));
	in->direction = DIRECTION_IN;
	out->direction = DIRECTION_OUT;
	in->protocol = out->protocol = world->udp ? PROTOCOL_UDP : PROTOCOL_TCP;
	parse_address(in->source, side_address(PEER, world->ipv6));
	parse_address(in->destination, side_address(HOST, world->ipv6));
	parse_address(out->source, side_address(CONTAINER, world->ipv6));
	in->destination_port = (uint16_t)side_port(HOST, world);
	out->source_port = (uint16_t)side_port(CONTAINER, world);
	for (int i = 0; i < 2; i++) {
		struct flow *flow = &halves->flows[i];

		flow->owner = owner_of(SLOT_CONTAINER);
		flow->kind = mapping ? FLOW_MAPPING : FLOW_MASQUERADE;
		flow->state = STATE_ESTABLISHED;
		flow->answered = 1;
		flow->reply = (i == 1) == mapping;
		flow->last_seen = now;
		flow->left_stack = now + 3600; /* UDP's turn to be seen by the stack is far off */
	}
	memcpy(halves->flows[0].address, out->source, sizeof(out->source));
	memcpy(halves->flows[1].address, in->destination, sizeof(in->destination));
	halves->flows[0].port = out->source_port;
	halves->flows[1].port = in->destination_port;
}

static void set_peer(struct halves *halves, uint32_t number)
{
	struct flow_key *in = &halves->keys[0], *out = &halves->keys[1];

	in->source[14] = (uint8_t)(PEER_ADDRESS(number) >> 8);
	in->source[15] = (uint8_t)PEER_ADDRESS(number);
	memcpy(out->destination, in->source, sizeof(in->source));
	in->source_port = out->destination_port = (uint16_t)PEER_PORT(number);
	for (int i = 0; i < 2; i++) {
		halves->flows[i].peer_port = in->source_port;
		halves->flows[i].pair = number + 1;
	}
}

static void fill_flows(const struct bpf_object *object, const struct world *world)
{
	static struct flow_key keys[2 * BATCH];
	static struct flow flows[2 * BATCH];
	int fd = map_fd(object, "flows");
	struct halves halves;
	uint32_t count = 0;

	begin_halves(&halves, world);
	for (uint32_t number = 0; number < world->flows; number++) {
		set_peer(&halves, number);
		memcpy(&keys[count], halves.keys, sizeof(halves.keys));
		memcpy(&flows[count], halves.flows, sizeof(halves.flows));
		count += 2;
		if (count < 2 * BATCH && number + 1 < world->flows)
			continue;
		if (bpf_map_update_batch(fd, keys, flows, &count, NULL))
			err(1, "filling the table of flows");
		count = 0;
	}
}

/* As on this machine, or larger where that many flows would not fit. */
static uint32_t table_size(uint32_t flows)
{
	uint32_t size = 131072;

	while (size < 2 * flows)
		size *= 2;
	return size;
}

/* Where a variable lies in its section; NULL: the object has none of that name. */
static uint32_t *find_variable(struct bpf_object *object, const char *section, const char *name)
{
	const struct btf *btf = bpf_object__btf(object);
	int id = btf__find_by_name_kind(btf, section, BTF_KIND_DATASEC);
	const struct btf_type *type = id < 0 ? NULL : btf__type_by_id(btf, (__u32)id);
	const struct btf_var_secinfo *variables = type ? btf_var_secinfos(type) : NULL;
	struct bpf_map *map = bpf_object__find_map_by_name(object, section);
	size_t size;
	char *bytes = map ? (char *)bpf_map__initial_value(map, &size) : NULL;

	for (int i = 0; bytes && variables && i < btf_vlen(type); i++) {
		const struct btf_type *variable = btf__type_by_id(btf, variables[i].type);

		if (strcmp(btf__name_by_offset(btf, variable->name_off), name) == 0)
			return (uint32_t *)(bytes + variables[i].offset);
	}
	return NULL;
}

/* As the loader does it. */
static void set_shortcuts(struct bpf_object *object, uint32_t entries)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, "shortcuts");
	uint32_t *a_cpu = find_variable(object, ".data", "shortcuts_a_cpu");
	uint32_t cpus = (uint32_t)libbpf_num_possible_cpus(), places = 1024;

	if (!map || !a_cpu)
		return;
	while (places * cpus < entries)
		places *= 2;
	*a_cpu = places;
	bpf_map__set_max_entries(map, places * cpus);
}

struct bpf_object *measured_load(const char *path, const struct world *world)
{
	struct bpf_object *object = bpf_object__open_file(path, NULL);
	uint32_t entries = table_size(world->flows);

	if (!object)
		err(1, "opening %s", path);
	bpf_map__set_max_entries(bpf_object__find_map_by_name(object, "flows"), entries);
	bpf_map__set_max_entries(bpf_object__find_map_by_name(object, "flow_pairs"),
				 FLOW_PAIRS(entries));
	set_shortcuts(object, entries);
	set_shortcuts(object, entries);
	if (bpf_object__load(object))
		err(1, "loading %s", path);
	fill_small_maps(object, world);
	if (world->population != NO_FLOWS)
		fill_flows(object, world);
	return object;
}

int measured_program(const struct bpf_object *object, const char *name)
{
	struct bpf_program *program = bpf_object__find_program_by_name(object, name);

	if (!program)
		errx(1, "the object has no program %s", name);
	return bpf_program__fd(program);
}
