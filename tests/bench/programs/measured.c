/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* measured.c - loads the programs and fills their maps as ADD would. */
#include "datapath/load/device_layout.h"
#include "measured.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <err.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "programs.h"

#define GENERATION 40

/* A thousand more containers with ten mappings each */
#define CROWD 1000
#define CROWD_MAPPINGS 10
#define CROWD_FIRST_SLOT 16
#define CROWD_FIRST_VETH 1000
#define CROWD_FIRST_PORT 10000

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
	case NEW_MAPPINGS:
	case FAST_MAPPINGS:
	case FAST_SENT:
		return sides[side].mapping_port;
	case MASQUERADES:
	case NEW_MASQUERADES:
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

/* Of a map of words, which other versions of the programs may not have. */
static void set_bit(const struct bpf_object *object, const char *map, uint32_t bit)
{
	uint32_t word = bit / 64;
	uint64_t bits = 0;

	if (bpf_object__find_map_fd_by_name(object, map) < 0)
		return;
	bpf_map_lookup_elem(map_fd(object, map), &word, &bits);
	bits |= 1ULL << bit % 64;
	update(object, map, &word, &bits);
}

static uint16_t hash_of(const uint8_t *address)
{
	uint64_t halves[2];

	memcpy(halves, address, sizeof(halves));
	return address_hash(halves[0], halves[1]);
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
	set_bit(object, "endpoint_addresses", hash_of(key.address));
	update(object, "endpoints", &key, &endpoint);
}

bool world_is_fast(const struct world *world)
{
	return world->population == FAST_MAPPINGS || world->population == FAST_MASQUERADES ||
	       world->population == FAST_SENT;
}

static void add_container(const struct bpf_object *object, uint32_t number, enum device veth,
			  const char *ipv4, const char *ipv6, bool fast)
{
	struct slot slot = {
		.generation = GENERATION, .live = 1, .ifindex = veth, .gateway = BRIDGE};
	uint32_t present;

	slot.fast_path = fast ? FAST_PATH_ESTABLISHED : FAST_PATH_OFF;
	memcpy(slot.host_mac, host_mac(veth), sizeof(slot.host_mac));
	memcpy(slot.gateway_mac, host_mac(BRIDGE), sizeof(slot.gateway_mac));
	slot.container = number;
	/* A device that exists, because the kernel checks that. */
	present = veth < CROWD_FIRST_VETH ? veth : VETH_TWO;
	update(object, "veths", &number, &present);
	update(object, "slots", &number, &slot);
	add_interface(object, veth, ROLE_PORT, number);
	add_endpoint(object, ipv4, number);
	add_endpoint(object, ipv6, number);
}

static void add_mapping(const struct bpf_object *object, uint32_t slot, enum protocol protocol,
			int port, const char *container)
{
	struct portmap_key key = {.protocol = protocol, .host_port = (uint16_t)port};
	struct portmap portmap = {.owner = owner_of(slot)};

	parse_address(key.host_address, strchr(container, ':') ? "::" : "0.0.0.0");
	parse_address(portmap.container_address, container);
	portmap.container_port = (uint16_t)sides[CONTAINER].mapping_port;
	set_bit(object, "published_ports", key.host_port);
	update(object, "portmaps", &key, &(struct portmap_succession){.now = portmap});
}

/* As after years of mappings and masquerade: each port and address has been used, so no bit that is
 * never cleared saves a look-up. */
static void mark_all(const struct bpf_object *object)
{
	static struct noticed noticed;
	uint64_t marked = UINT64_MAX;
	uint32_t only = 0;

	for (uint32_t word = 0; word < PUBLISHED_WORDS; word++)
		update(object, "published_ports", &word, &marked);
	for (uint32_t word = 0; word < PORT_WORDS; word++)
		update(object, "endpoint_addresses", &word, &marked);
	memset(noticed.local_container_ports, 0xff, sizeof(noticed.local_container_ports));
	memset(noticed.external_addresses, 0xff, sizeof(noticed.external_addresses));
	update(object, "noticed", &only, &noticed);
}

/* The flows' aliases themselves need not be there: those of other peers are not found. */
static void count_all_ports(const struct bpf_object *object)
{
	const struct external_port counts = {{1, 1}};

	for (uint32_t port = 0; port < EXTERNAL_PORTS; port++)
		update(object, "external_ports", &port, &counts);
}

static void add_crowd(const struct bpf_object *object)
{
	char ipv4[32], ipv6[32];

	mark_all(object);
	for (uint32_t i = 0; i < CROWD; i++) {
		uint32_t slot = CROWD_FIRST_SLOT + i;
		int port = CROWD_FIRST_PORT + (int)i * CROWD_MAPPINGS;

		snprintf(ipv4, sizeof(ipv4), "10.10.%u.%u", 100 + i / 250, i % 250 + 2);
		snprintf(ipv6, sizeof(ipv6), "fd00:10::1:%x", i);
		add_container(object, slot, CROWD_FIRST_VETH + i, ipv4, ipv6, true);
		for (int k = 0; k < CROWD_MAPPINGS; k++)
			add_mapping(object, slot, PROTOCOL_UDP, port + k, ipv4);
	}
}

static void fill_small_maps(const struct bpf_object *object, const struct world *world)
{
	struct meta meta = {.layout = LAYOUT, .complete = 1, .masquerade_ports = {{1024, 32767}}};
	uint32_t only = 0;

	update(object, "meta", &only, &meta);
	add_interface(object, UPLINK, ROLE_UPLINK, 0);
	add_interface(object, SECOND_UPLINK, ROLE_UPLINK, 0);
	add_interface(object, BRIDGE, ROLE_BRIDGE, 0);
	add_container(object, SLOT_CONTAINER, VETH_ONE, v4_container_one, v6_container_one,
		      world_is_fast(world));
	add_container(object, SLOT_QUIET, VETH_QUIET, v4_container_quiet, v6_container_quiet,
		      world_is_fast(world));
	for (int i = 0; i < 2; i++) {
		enum protocol protocol = i ? PROTOCOL_TCP : PROTOCOL_UDP;

		add_mapping(object, SLOT_CONTAINER, protocol, sides[HOST].mapping_port,
			    v4_container_one);
		add_mapping(object, SLOT_CONTAINER, protocol, sides[HOST].mapping_port,
			    v6_container_one);
	}
}

/* The default size, or larger if the flows need it: one owner may have half of the table. */
static uint32_t table_size(uint32_t flows)
{
	uint32_t size = 131072;

	while (size < 4 * flows)
		size *= 2;
	return size;
}

/* The initial value of a variable in its section; NULL: the object has no such variable. */
static char *find_variable(const struct bpf_object *object, const char *section, const char *name)
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
			return bytes + variables[i].offset;
	}
	return NULL;
}

void *measured_variable(const struct bpf_object *object, const char *section, const char *name)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, section);
	char *variable = find_variable(object, section, name), *bytes;
	size_t size, offset;

	if (!variable)
		errx(1, "the object has no variable %s", name);
	offset = (size_t)(variable - (char *)bpf_map__initial_value(map, &size));
	bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
	if (bytes == MAP_FAILED)
		err(1, "mapping %s", section);
	return bytes + offset;
}

static void set_variable(struct bpf_object *object, const char *section, const char *name,
			 uint32_t value)
{
	uint32_t *variable = (uint32_t *)(void *)find_variable(object, section, name);

	if (variable)
		*variable = value;
}

static void set_size(struct bpf_object *object, const char *name, uint32_t entries)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, name);

	if (map)
		bpf_map__set_max_entries(map, entries);
}

/* As the loader does, for an object of this version; but no device is looked at. */
static void set_device_layout(struct bpf_object *object, struct device_layout *layout)
{
	int id = btf__find_by_name_kind(bpf_object__btf(object), "device_layout", BTF_KIND_STRUCT);
	char *variable = find_variable(object, ".rodata", "device_layout");

	if (!variable || btf__resolve_size(bpf_object__btf(object), (__u32)id) != sizeof(*layout))
		return;
	layout->known = 0;
	memcpy(variable, layout, sizeof(*layout));
}

/* The same */
static void set_sizes(struct bpf_object *object, uint32_t entries)
{
	uint32_t cpus = (uint32_t)libbpf_num_possible_cpus(), sets = 256;

	while (sets * cpus * 2 < entries)
		sets *= 2;
	set_size(object, "connections", CONNECTIONS(entries));
	set_size(object, "aliases", CONNECTIONS(entries));
	set_size(object, "assured", entries + 1);
	set_size(object, "half_open", HALF_OPEN(entries) + 1);
	set_variable(object, ".rodata", "assured_places", entries);
	set_variable(object, ".rodata", "half_open_places", HALF_OPEN(entries));
	set_size(object, "memos", sets * cpus);
	set_variable(object, ".data", "memo_sets_a_cpu", sets);
}

struct bpf_object *measured_load(const char *path, const struct world *world, enum crowd crowd)
{
	struct device_layout layout;
	struct bpf_object *object;

	device_layout_find(&layout);
	object = bpf_object__open_file(path, NULL);
	if (!object)
		err(1, "opening %s", path);
	set_sizes(object, table_size(world->flows));
	set_device_layout(object, &layout);
	if (bpf_object__load(object))
		err(1, "loading %s", path);
	fill_small_maps(object, world);
	if (crowd)
		add_crowd(object);
	if (crowd == CROWD_AT_PORTS)
		count_all_ports(object);
	return object;
}

int measured_program(const struct bpf_object *object, const char *name)
{
	struct bpf_program *program = bpf_object__find_program_by_name(object, name);

	if (!program)
		errx(1, "the object has no program %s", name);
	return bpf_program__fd(program);
}
