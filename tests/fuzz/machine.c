/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* machine.c - loads and runs the programs, writes and reads their maps. */
#include "machine.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <err.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "../packet/marked.h"
#include "../packet/seal.h"
#include "device_members.h"
#include "records.h"
#include "trace_event.h"
#include "bpf/portmap.skel.h"

/* The kernel aligns the elements of an array to 8 bytes. */
#define AT(array, type, index) \
	((type *)((uint8_t *)(array) + (size_t)(index) * ((sizeof(type) + 7) / 8 * 8)))

/* Programs with tables of one size. Arrays are mapped: reading them costs no system call. */
struct machine {
	struct portmap_bpf *skeleton;
	int programs[HOOKS];
	struct marked marked[HOOKS]; /* the same, of packets with a seal */
	int connections;
	int aliases;
	void *half_open;
	void *assured;
	void *shares;
	void *usage;
	void *client_shares;
	void *port_shares;
	void *external_ports;
	void *tunnel_notes;
	void *noticed;
	void *slots;
	void *meta;
	void *published_ports;
	void *endpoint_addresses;
	struct world written;
};

static struct machine machines[WORLD_SIZES];
static struct machine *machine;

const char *machine_hook_name(enum hook hook)
{
	static const char *const names[HOOKS] = {"from_uplink", "to_uplink", "from_bridge",
						 "to_container", "from_container"};

	return names[hook];
}

static void *map_array(struct bpf_map *map)
{
	size_t size = (bpf_map__value_size(map) + 7) / 8 * 8 * (size_t)bpf_map__max_entries(map);
	void *array = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	if (array == MAP_FAILED)
		err(1, "mapping %s", bpf_map__name(map));
	return array;
}

#define ARRAYS(X) \
	X(half_open) \
	X(assured) \
	X(shares) \
	X(usage) \
	X(client_shares) \
	X(port_shares) \
	X(external_ports) \
	X(tunnel_notes) \
	X(noticed) \
	X(slots) \
	X(meta) \
	X(published_ports) \
	X(endpoint_addresses)

static void write_host_addresses(const struct portmap_bpf *skeleton)
{
	int map = bpf_map__fd(skeleton->maps.host_addresses);
	struct host_address known = {0};
	uint8_t address[16];

	for (int i = 0; world_host_addresses[i]; i++) {
		world_address(address, world_host_addresses[i]);
		if (bpf_map_update_elem(map, address, &known, BPF_ANY))
			err(1, "writing the host's addresses");
	}
}

static void load(const struct world_size *size)
{
	struct portmap_bpf *skeleton = portmap_bpf__open();

	if (!skeleton)
		err(1, "opening the programs");
	/* All runs on one CPU. */
	skeleton->rodata->half_open_places = size->half_open_places;
	skeleton->rodata->assured_places = size->assured_places;
#define MAPPABLE(map) bpf_map__set_map_flags(skeleton->maps.map, BPF_F_MMAPABLE);
	ARRAYS(MAPPABLE)
	if (bpf_map__set_max_entries(skeleton->maps.half_open, size->half_open_places + 1) ||
	    bpf_map__set_max_entries(skeleton->maps.assured, size->assured_places + 1) ||
	    bpf_map__set_max_entries(skeleton->maps.connections, WORLD_CONNECTIONS) ||
	    bpf_map__set_max_entries(skeleton->maps.aliases, WORLD_ALIASES) ||
	    portmap_bpf__load(skeleton))
		err(1, "loading the programs");
	for (enum hook hook = 0; hook < HOOKS; hook++) {
		machine->programs[hook] = bpf_program__fd(
			bpf_object__find_program_by_name(skeleton->obj, machine_hook_name(hook)));
		if (marked_load(&machine->marked[hook], machine->programs[hook]))
			err(1, "loading a program that marks packets");
	}
	write_host_addresses(skeleton);
	machine->connections = bpf_map__fd(skeleton->maps.connections);
	machine->aliases = bpf_map__fd(skeleton->maps.aliases);
#define MAPPED(map) machine->map = map_array(skeleton->maps.map);
	ARRAYS(MAPPED)
	machine->skeleton = skeleton;
}

void machine_load(void)
{
	for (int i = 0; i < WORLD_SIZES; i++) {
		machine = &machines[i];
		load(&world_sizes[i]);
	}
}

uint32_t machine_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint32_t)now.tv_sec;
}

static void update(int map, const void *key, const void *value)
{
	if (bpf_map_update_elem(map, key, value, BPF_ANY))
		err(1, "writing to a map");
}

static void write_slots(const struct world *world)
{
	int veths = bpf_map__fd(machine->skeleton->maps.veths);

	for (uint32_t i = 1; i < WORLD_SLOTS; i++) {
		struct slot *slot = AT(machine->slots, struct slot, i);

		*slot = world->slots[i];
		slot->container = i;
		if (world->veth_gone[i])
			bpf_map_delete_elem(veths, &i);
		else if (slot->ifindex != machine->written.slots[i].ifindex ||
			 machine->written.veth_gone[i])
			update(veths, &i, &slot->ifindex);
	}
}

static void write_policies(const struct world *world)
{
	int map = bpf_map__fd(machine->skeleton->maps.policies);

	for (uint32_t i = 1; i < WORLD_SLOTS; i++) {
		if (world->has_policy[i])
			update(map, &i, &world->policies[i]);
		else if (machine->written.has_policy[i])
			bpf_map_delete_elem(map, &i);
	}
}

static void write_endpoints(const struct world *world)
{
	int map = bpf_map__fd(machine->skeleton->maps.endpoints);

	for (int i = 0; i < WORLD_ENDPOINTS; i++) {
		const struct world_endpoint *endpoint = &world->endpoints[i];

		if (memcmp(endpoint, &machine->written.endpoints[i], sizeof(*endpoint)) == 0)
			continue;
		if (endpoint->present)
			update(map, &endpoint->key, &endpoint->value);
		else
			bpf_map_delete_elem(map, &endpoint->key);
	}
}

static void write_interfaces(const struct world *world)
{
	int map = bpf_map__fd(machine->skeleton->maps.interfaces);

	for (int i = 0; i < WORLD_INTERFACES; i++) {
		const struct world_interface *interface = &world->interfaces[i];

		if (memcmp(interface, &machine->written.interfaces[i], sizeof(*interface)) == 0)
			continue;
		if (interface->present)
			update(map, &interface->ifindex, &interface->value);
		else
			bpf_map_delete_elem(map, &interface->ifindex);
	}
}

static void write_portmaps(const struct world *world)
{
	int map = bpf_map__fd(machine->skeleton->maps.portmaps);

	for (int i = 0; i < machine->written.portmap_count; i++)
		bpf_map_delete_elem(map, &machine->written.portmaps[i].key);
	for (int i = 0; i < world->portmap_count; i++) {
		const struct portmap_succession entry = {.now = world->portmaps[i].value};

		update(map, &world->portmaps[i].key, &entry);
	}
}

static void write_settings(const struct world *world)
{
	struct meta meta = {.layout = LAYOUT, .complete = 1, .port_seed = world->port_seed};

	memcpy(meta.masquerade_ports, world->ranges, sizeof(meta.masquerade_ports));
	memcpy(machine->meta, &meta, sizeof(meta));
	memcpy(machine->noticed, &world->noticed, sizeof(world->noticed));
	memcpy(machine->published_ports, world->published_ports, sizeof(world->published_ports));
	memcpy(machine->endpoint_addresses, world->endpoint_addresses,
	       sizeof(world->endpoint_addresses));
}

/* All entries of a hash with keys of connections. */
static int read_all(int map, struct connection_key *keys, void *values)
{
	uint32_t count = WORLD_CONNECTIONS;
	uint64_t position;

	if (bpf_map_lookup_batch(map, NULL, &position, keys, values, &count, NULL) &&
	    errno != ENOENT)
		err(1, "reading a table");
	return (int)count;
}

static struct connection_key keys[WORLD_CONNECTIONS];
static struct connection connections[WORLD_CONNECTIONS];
static struct alias aliases[WORLD_ALIASES];

static void delete_all(int map, void *values)
{
	int count = read_all(map, keys, values);

	for (int i = 0; i < count; i++)
		bpf_map_delete_elem(map, &keys[i]);
}

static void write_counts(const struct world *world)
{
	const struct owner all = {0};

	memset(machine->client_shares, 0, SHARES * sizeof(uint64_t));
	memset(machine->port_shares, 0, SHARES * sizeof(struct port_share));
	memset(machine->external_ports, 0, EXTERNAL_PORTS * sizeof(struct external_port));
	world_count_ports(world, machine->external_ports);
	memset(machine->tunnel_notes, 0, TUNNEL_PLACES * sizeof(struct tunnel_note));
	for (int i = 0; i < world->connection_count; i++) {
		const struct world_connection *record = &world->connections[i];

		if (record_has_client(record))
			++*AT(machine->client_shares, uint32_t,
			      client_place(world->port_seed, &record->key, &record->value));
	}
	for (int i = 0; i < world->alias_count; i++) {
		const struct connection_key *key = &world->aliases[i].key;
		const struct owner *owner = &world->aliases[i].value.owner;

		if (!owner->slot)
			continue;
		AT(machine->port_shares, struct port_share, port_place(world->port_seed, key, &all))
			->ports++;
		AT(machine->port_shares, struct port_share,
		   port_place(world->port_seed, key, owner))
			->ports++;
	}
}

/* Returns where the programs have the numbers of an assured TCP connection, or NULL. */
static struct tcp_numbers *assured_numbers(const struct connection_key *key,
					   const struct connection *value)
{
	struct assured *place = (struct assured *)machine->assured + value->place;

	return key->protocol == PROTOCOL_TCP && value->state & STATE_ASSURED &&
			       place->id == value->id
		       ? place->tcp
		       : NULL;
}

/* Nobody may read the numbers in the record of an assured one. */
static void write_record(const struct world_connection *record)
{
	struct connection value = record->value;
	struct tcp_numbers *tcp = assured_numbers(&record->key, &value);

	if (tcp) {
		memcpy(tcp, value.tcp, sizeof(value.tcp));
		memset(value.tcp, 0xa5, sizeof(value.tcp));
	}
	update(machine->connections, &record->key, &value);
}

/* In a world the record has them. */
static void read_numbers(struct world_connection *record)
{
	const struct tcp_numbers *tcp = assured_numbers(&record->key, &record->value);

	if (tcp)
		memcpy(record->value.tcp, tcp, sizeof(record->value.tcp));
}

static void write_records(const struct world *world)
{
	const struct world_size *size = world_places(world);

	delete_all(machine->connections, connections);
	delete_all(machine->aliases, aliases);
	for (int i = 0; i < world->alias_count; i++)
		update(machine->aliases, &world->aliases[i].key, &world->aliases[i].value);
	memcpy(machine->half_open, world->half_open,
	       (size->half_open_places + 1) * sizeof(struct half_open));
	memcpy(machine->assured, world->assured,
	       (size->assured_places + 1) * sizeof(struct assured));
	for (int i = 0; i < world->connection_count; i++)
		write_record(&world->connections[i]);
	memcpy(machine->shares, world->shares, sizeof(world->shares));
	memcpy(machine->usage, &world->usage, sizeof(world->usage));
	write_counts(world);
}

static struct fragment_row fragment_rows[FRAGMENT_ROWS];
static uint32_t row_numbers[FRAGMENT_ROWS];
static bool fragments_used;

static void delete_fragments(void)
{
	uint32_t count = FRAGMENT_ROWS;

	if (!fragments_used)
		return;
	fragments_used = false;
	memset(fragment_rows, 0, sizeof(fragment_rows));
	for (uint32_t number = 0; number < count; number++)
		row_numbers[number] = number;
	if (bpf_map_update_batch(bpf_map__fd(machine->skeleton->maps.fragments), row_numbers,
				 fragment_rows, &count, NULL))
		err(1, "writing fragments");
}

void machine_write(const struct world *world)
{
	if (machine)
		delete_fragments();
	machine = &machines[world->size];
	host_forget_routes(machine->skeleton->maps.route_answers);
	host_forget_routes(machine->skeleton->maps.renewals);
	host_forget_routes(machine->skeleton->maps.host_answers);
	write_slots(world);
	write_policies(world);
	write_endpoints(world);
	write_interfaces(world);
	write_portmaps(world);
	write_settings(world);
	write_records(world);
	machine->written = *world;
}

int machine_run(enum hook hook, uint32_t device, uint32_t came_in_by, bool verified,
		struct frame *frame)
{
	static uint8_t out[FRAME_SIZE];
	struct __sk_buff context = {.ifindex = device, .ingress_ifindex = came_in_by};
	struct told told = {
		.hash = seal_of(machine->written.port_seed, frame->bytes, frame->length, ETH_HLEN)};
	int program =
		verified ? marked_program(&machine->marked[hook], told) : machine->programs[hook];
	DECLARE_LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame->bytes,
			    .data_size_in = (uint32_t)frame->length, .data_out = out,
			    .data_size_out = sizeof(out), .ctx_in = &context,
			    .ctx_size_in = sizeof(context), .repeat = 1);

	/* No memo is used: by one a packet does not reach the record that is compared. */
	machine->skeleton->data->memos_until[OUTWARDS] = 0;
	machine->skeleton->data->memos_until[INWARDS] = 0;
	if (bpf_prog_test_run_opts(program, &options))
		return MACHINE_REFUSED;
	frame->length = options.data_size_out;
	memcpy(frame->bytes, out, frame->length);
	return (int)options.retval;
}

void machine_read(struct world *world)
{
	const struct world_size *size = world_places(world);

	world->connection_count = read_all(machine->connections, keys, connections);
	for (int i = 0; i < world->connection_count; i++) {
		world->connections[i] =
			(struct world_connection){.key = keys[i], .value = connections[i]};
		read_numbers(&world->connections[i]);
	}
	world->alias_count = read_all(machine->aliases, keys, aliases);
	for (int i = 0; i < world->alias_count; i++)
		world->aliases[i] = (struct world_alias){.key = keys[i], .value = aliases[i]};
	memcpy(world->half_open, machine->half_open,
	       (size->half_open_places + 1) * sizeof(struct half_open));
	memcpy(world->assured, machine->assured,
	       (size->assured_places + 1) * sizeof(struct assured));
	memcpy(world->shares, machine->shares, sizeof(world->shares));
	memcpy(&world->usage, machine->usage, sizeof(world->usage));
	memcpy(&world->noticed, machine->noticed, sizeof(world->noticed));
}

void machine_read_fragment(struct world *world, const struct fragment_key *key)
{
	uint32_t count = FRAGMENT_ROWS, next;
	const struct fragment *place;

	if (bpf_map_lookup_batch(bpf_map__fd(machine->skeleton->maps.fragments), NULL, &next,
				 row_numbers, fragment_rows, &count, NULL) &&
	    count != FRAGMENT_ROWS)
		err(1, "reading fragments");
	fragments_used = true;
	memset(&world->fragment, 0, sizeof(world->fragment));
	for (uint32_t i = 0; i < count * FRAGMENT_PLACES; i++) {
		place = &fragment_rows[i / FRAGMENT_PLACES].places[i % FRAGMENT_PLACES];
		if (memcmp(&place->key, key, sizeof(*key)) == 0)
			world->fragment = *place;
	}
}

uint32_t machine_client_share(uint32_t place)
{
	return *AT(machine->client_shares, uint32_t, place);
}

const struct port_share *machine_port_share(uint32_t place)
{
	return AT(machine->port_shares, struct port_share, place);
}

const struct external_port *machine_external_ports(void)
{
	return machine->external_ports;
}

bool machine_has_tunnel(uint64_t seed, const struct connection_key *external)
{
	uint64_t whose = external_hash(seed, external);
	const struct tunnel_note *note =
		AT(machine->tunnel_notes, struct tunnel_note, whose % TUNNEL_PLACES);
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return note->hash == whose && note->seen && now.tv_sec - (time_t)note->seen <= 600;
}

void machine_counts(struct counters *counts)
{
	static struct counters each[256];
	uint64_t *sum = (uint64_t *)counts;
	int cpus = libbpf_num_possible_cpus();
	uint32_t only = 0;

	memset(counts, 0, sizeof(*counts));
	for (int i = 0; i < WORLD_SIZES; i++) {
		if (cpus > 256 ||
		    bpf_map_lookup_elem(bpf_map__fd(machines[i].skeleton->maps.counters), &only,
					each))
			err(1, "reading the counters");
		for (int cpu = 0; cpu < cpus; cpu++)
			for (size_t j = 0; j < sizeof(*counts) / sizeof(*sum); j++)
				sum[j] += ((const uint64_t *)&each[cpu])[j];
	}
}
