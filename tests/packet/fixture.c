/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fixture.c - loads the programs, fills their maps directly, reads them back. */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <err.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "datapath/load/device_layout.h"
#include "marked.h"
#include "tc_index_values.h"
#include "trace_event.h"
#include "bpf/portmap.skel.h"
#include "keys.h"
#include "records.h"
#include "row.h"
#include "seal.h"

#define MARK 0x5a5a /* as another program may have set it */

/* Since Linux 6.11: the frame has a CHECKSUM_COMPLETE sum, and EBADMSG says that it is wrong for
 * the output. Older headers lack it. */
#define TEST_CHECKSUM_COMPLETE (1U << 2)

static uint32_t run_flags;
static enum mark next_mark;
static int run_times = 1;
static struct __sk_buff last_context;
static struct portmap_bpf *skeleton;
static uint32_t generations[ROUTED + 1];
static enum fast_path fast_paths[ROUTED + 1];
static bool policies[ROUTED + 1]; /* whether it has one */
static uint64_t containers[ROUTED + 1];

bool fixture_sees_devices(void)
{
	return skeleton->rodata->device_layout.known && skeleton->rodata->device_layout.ipv6;
}

/* Not all kernels let programs see which programs are attached to a device. */
void fixture_load(void)
{
	struct device_layout layout = {0};

#ifndef FALLBACKS
	device_layout_find(&layout);
#endif
	skeleton = portmap_bpf__open();
	if (!skeleton)
		err(1, "opening the programs");
	skeleton->rodata->device_layout = layout;
	records_prepare(skeleton);
	if (portmap_bpf__load(skeleton))
		err(1, "loading the programs");
	records_open();
}

void fixture_unload(void)
{
	portmap_bpf__destroy(skeleton);
}

static int program_fd(enum hook hook)
{
	switch (hook) {
	case FROM_UPLINK:
		return bpf_program__fd(skeleton->progs.from_uplink);
	case TO_UPLINK:
		return bpf_program__fd(skeleton->progs.to_uplink);
	case FROM_UPLINK_RAW:
		return bpf_program__fd(skeleton->progs.from_uplink_raw);
	case TO_UPLINK_RAW:
		return bpf_program__fd(skeleton->progs.to_uplink_raw);
	case FROM_BRIDGE:
		return bpf_program__fd(skeleton->progs.from_bridge);
	case TO_CONTAINER:
		return bpf_program__fd(skeleton->progs.to_container);
	case FROM_CONTAINER:
		return bpf_program__fd(skeleton->progs.from_container);
	default:
		abort();
	}
}

static struct marked marked_hooks[TO_UPLINK_RAW + 1];

/* The program for a packet with the mark. */
static int program_of(enum hook hook, enum device came_in_by, const struct frame *frame)
{
	struct marked *marked = &marked_hooks[hook];
	struct told told = {0};
	bool raw = hook == FROM_UPLINK_RAW || hook == TO_UPLINK_RAW;
	bool leaves = hook == TO_UPLINK || hook == TO_CONTAINER || hook == TO_UPLINK_RAW;

	if (next_mark == MARK_NONE || (next_mark == MARK_USUAL && (!leaves || !came_in_by)))
		return program_fd(hook);
	if (!marked->program && marked_load(marked, program_fd(hook)))
		err(1, "loading a program that marks packets");
	if (next_mark == MARK_DONE)
		told.tc_index = TC_INDEX_OURS | TC_INDEX_DONE;
	else if (next_mark == MARK_CONFIRM)
		told.tc_index = TC_INDEX_OURS | TC_INDEX_CONFIRM;
	else
		told.hash = seal_of(PORT_SEED, frame->bytes, frame->length, raw ? 0 : ETH_HLEN);
	return marked_program(marked, told);
}

void fixture_set_mark(enum mark wanted)
{
	next_mark = wanted;
}

bool fixture_rules_stand(uint32_t seconds)
{
	volatile uint32_t *second = &skeleton->data->firewall_second;

	if (*second)
		*second = fixture_second() - seconds;
	return *second;
}

int fixture_run(enum hook hook, enum device device, enum device came_in_by, struct frame *frame)
{
	struct __sk_buff context = {.ifindex = device,
				    .ingress_ifindex = came_in_by,
				    .mark = MARK,
				    .priority = MARK,
				    .gso_size = frame->segment_size};
	struct __sk_buff context_out = {0};
	uint8_t out[FRAME_SIZE];
	DECLARE_LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame->bytes,
			    .data_size_in = (uint32_t)frame->length, .data_out = out,
			    .data_size_out = sizeof(out), .ctx_in = &context,
			    .ctx_size_in = sizeof(context), .ctx_out = &context_out,
			    .ctx_size_out = sizeof(context_out), .repeat = run_times,
			    .flags = run_flags, );

	if (bpf_prog_test_run_opts(program_of(hook, came_in_by, frame), &options))
		return errno == EBADMSG ? FIXTURE_BAD_SUM : FIXTURE_REFUSED - errno;
	memcpy(frame->bytes, out, options.data_size_out);
	frame->length = options.data_size_out;
	last_context = context_out;
	if (options.retval != TC_ACT_REDIRECT &&
	    (context_out.mark != MARK || context_out.priority != MARK))
		return FIXTURE_MARKED;
	return (int)options.retval;
}

uint32_t fixture_hash_left(enum hook hook, enum device device, enum device came_in_by,
			   struct frame *frame)
{
	run_times = 2; /* the second run sees what the first one has left */
	if (fixture_run(hook, device, came_in_by, frame) != TC_ACT_UNSPEC)
		row_fail("the packet does not pass");
	run_times = 1;
	return marked_hash_left(&marked_hooks[hook]);
}

void fixture_check_context(bool mark_cleared, int priority)
{
	__u32 mark = mark_cleared ? 0 : MARK;

	if (last_context.mark != mark)
		row_fail("the mark is %u, expected %u", last_context.mark, mark);
	if (last_context.priority != (priority < 0 ? MARK : (__u32)priority))
		row_fail("the priority is %u", last_context.priority);
}

bool fixture_set_checksum_complete(bool complete)
{
	struct frame frame = {.length = 64};

	run_flags = complete ? TEST_CHECKSUM_COMPLETE : 0;
	if (fixture_run(FROM_UPLINK, UPLINK, UPLINK, &frame) != FIXTURE_REFUSED - EINVAL)
		return true;
	run_flags = 0;
	return false;
}

void fixture_address(uint8_t *address, const char *text)
{
	memset(address, 0, 16);
	if (inet_pton(AF_INET6, text, address) == 1)
		return;
	address[10] = 0xff;
	address[11] = 0xff;
	if (inet_pton(AF_INET, text, address + 12) != 1)
		errx(1, "not an address: %s", text);
}

static void update(const struct bpf_map *map, const void *key, const void *value)
{
	if (bpf_map_update_elem(bpf_map__fd(map), key, value, BPF_ANY))
		err(1, "writing to map %s", bpf_map__name(map));
}

/* Each key is found from the one before: from the beginning, all empty buckets would be searched.
 */
static void clear(const struct bpf_map *map, size_t key_size)
{
	int fd = bpf_map__fd(map);
	uint8_t key[256], next[256];
	bool more;

	if (key_size > sizeof(key))
		errx(1, "key of map %s is too big", bpf_map__name(map));
	more = !bpf_map_get_next_key(fd, NULL, key);
	while (more) {
		more = !bpf_map_get_next_key(fd, key, next);
		bpf_map_delete_elem(fd, key);
		memcpy(key, next, key_size);
	}
}

struct owner fixture_owner(enum container container)
{
	return (struct owner){.slot = container, .generation = generations[container]};
}

static void write_slot(enum container container, bool live)
{
	static const enum device veths[] = {
		[ONE] = VETH_ONE, [TWO] = VETH_TWO, [QUIET] = VETH_QUIET, [ROUTED] = VETH_ROUTED};
	struct slot slot = {.generation = generations[container],
			    .live = live,
			    .ifindex = veths[container],
			    .gateway = container == ROUTED ? VETH_ROUTED : BRIDGE,
			    .fast_path = fast_paths[container],
			    .has_policy = policies[container]};
	uint32_t number = container;

	slot.container = containers[container];
	update(skeleton->maps.veths, &number, &slot.ifindex);
	update(skeleton->maps.slots, &number, &slot);
}

void fixture_make_one_container(enum container one, enum container other)
{
	containers[other] = containers[one];
	write_slot(other, true);
}

void fixture_remove_veth(enum container container)
{
	uint32_t number = container;

	bpf_map_delete_elem(bpf_map__fd(skeleton->maps.veths), &number);
}

void fixture_set_fast_path(enum container container, enum fast_path mode)
{
	fast_paths[container] = mode;
	write_slot(container, true);
}

void fixture_kill(enum container container)
{
	write_slot(container, false);
}

void fixture_offload_one(enum fast_path mode)
{
	struct slot slot = {.generation = generations[ONE],
			    .live = 1,
			    .ifindex = VETH_ONE,
			    .gateway = BRIDGE,
			    .fast_path = mode,
			    .has_policy = policies[ONE]};
	uint32_t number = ONE;

	memcpy(slot.host_mac, host_mac(VETH_ONE), MAC_SIZE);
	memcpy(slot.gateway_mac, host_mac(BRIDGE), MAC_SIZE);
	update(skeleton->maps.slots, &number, &slot);
}

void fixture_renew(enum container container)
{
	generations[container] += 100;
	write_slot(container, true);
}

static void set_bit(const struct bpf_map *map, uint32_t bit)
{
	uint32_t word = bit / 64;
	uint64_t bits = 0;

	bpf_map_lookup_elem(bpf_map__fd(map), &word, &bits);
	bits |= 1ULL << bit % 64;
	update(map, &word, &bits);
}

static void mark_endpoint(const uint8_t *address)
{
	set_bit(skeleton->maps.endpoint_addresses,
		address_hash(address_half(address, 0), address_half(address, 1)));
}

void fixture_set_endpoint(const char *address, enum container owner, uint8_t prefix_length,
			  bool masquerade)
{
	struct endpoint endpoint = {.owner = fixture_owner(owner),
				    .prefix_length = prefix_length,
				    .masquerade = masquerade};
	struct endpoint_key key;

	fixture_address(key.address, address);
	mark_endpoint(key.address);
	update(skeleton->maps.endpoints, &key, &endpoint);
}

static void set_endpoints(enum container container)
{
	static const char *const addresses[][2] = {
		[ONE] = {v4_container_one, v6_container_one},
		[TWO] = {v4_container_two, v6_container_two},
		[QUIET] = {v4_container_quiet, v6_container_quiet},
		[ROUTED] = {v4_container_routed, v6_container_routed}};
	bool masquerade = container != QUIET;

	fixture_set_endpoint(addresses[container][0], container, container == ROUTED ? 24 : 16,
			     masquerade);
	fixture_set_endpoint(addresses[container][1], container, 64, masquerade);
}

void fixture_add_again(enum container container)
{
	fixture_renew(container);
	set_endpoints(container);
}

static void change_endpoint(const char *address, void (*change)(struct endpoint *endpoint))
{
	int map = bpf_map__fd(skeleton->maps.endpoints);
	struct endpoint endpoint;
	struct endpoint_key key;

	fixture_address(key.address, address);
	if (bpf_map_lookup_elem(map, &key, &endpoint))
		err(1, "reading the endpoint %s", address);
	change(&endpoint);
	update(skeleton->maps.endpoints, &key, &endpoint);
}

static void share(struct endpoint *endpoint)
{
	endpoint->shared = 1;
}

static void make_strict(struct endpoint *endpoint)
{
	endpoint->strict = 1;
}

void fixture_share_address(const char *address)
{
	change_endpoint(address, share);
}

void fixture_make_strict(const char *address)
{
	change_endpoint(address, make_strict);
}

void fixture_set_policy(enum container owner, struct policy policy)
{
	uint32_t slot = owner;

	policy.owner = fixture_owner(owner);
	update(skeleton->maps.policies, &slot, &policy);
	policies[owner] = true;
	write_slot(owner, true);
}

struct address_range fixture_range(const char *address, uint8_t prefix_length, bool exception)
{
	struct address_range range = {.prefix_length = prefix_length, .exception = exception};

	fixture_address(range.address, address);
	return range;
}

static void portmap_key_of(struct portmap_key *key, int protocol, const char *host, int host_port)
{
	memset(key, 0, sizeof(*key));
	key->protocol = (enum protocol)protocol;
	key->host_port = (uint16_t)host_port;
	fixture_address(key->host_address, host);
}

void fixture_map_port(int protocol, const char *host, int host_port, const char *container,
		      int container_port, enum container owner)
{
	struct portmap_succession entry = {
		.now = {.owner = fixture_owner(owner), .container_port = (uint16_t)container_port}};
	struct portmap_key key;

	portmap_key_of(&key, protocol, host, host_port);
	fixture_address(entry.now.container_address, container);
	set_bit(skeleton->maps.published_ports, (uint32_t)host_port);
	entry.now.names_address = strcmp(host, "0.0.0.0") && strcmp(host, "::");
	if (entry.now.names_address)
		set_bit(skeleton->maps.published_ports, 65536 + (uint32_t)host_port);
	update(skeleton->maps.portmaps, &key, &entry);
}

void fixture_replace(int protocol, const char *host, int host_port, const char *container,
		     int container_port, enum container owner)
{
	struct portmap_succession entry;
	struct portmap_key key;

	portmap_key_of(&key, protocol, host, host_port);
	if (bpf_map_lookup_elem(bpf_map__fd(skeleton->maps.portmaps), &key, &entry))
		err(1, "mapping of port %d", host_port);
	entry.earlier = entry.before;
	entry.before = entry.now;
	entry.now = (struct portmap){.owner = fixture_owner(owner),
				     .container_port = (uint16_t)container_port};
	fixture_address(entry.now.container_address, container);
	update(skeleton->maps.portmaps, &key, &entry);
}

void fixture_leave_to_nat(int protocol, const char *host, int host_port, uint32_t hooks)
{
	struct nat_port taken = {.hooks = hooks};
	struct portmap_key key;

	portmap_key_of(&key, protocol, host, host_port);
	set_bit(skeleton->maps.published_ports, 2 * 65536 + (uint32_t)host_port);
	update(skeleton->maps.nat_ports, &key, &taken);
}

static void add_host_address(const char *address, bool excluded)
{
	struct host_address_key key;
	struct host_address value = {.ifindex = UPLINK, .excluded = excluded};

	fixture_address(key.address, address);
	update(skeleton->maps.host_addresses, &key, &value);
}

void fixture_exclude(const char *address)
{
	add_host_address(address, true);
}

void fixture_add_host_address(const char *address)
{
	add_host_address(address, false);
}

void fixture_forget_host_addresses(void)
{
	clear(skeleton->maps.host_addresses, sizeof(struct host_address_key));
}

static void add_host_addresses(void)
{
	static const char *const addresses[] = {v4_host,   v4_host_other, v4_second_uplink,
						v4_bridge, v6_host,       v6_second_uplink,
						v6_bridge, "::"};

	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++)
		add_host_address(addresses[i], false);
}

void fixture_unmap_port(int protocol, const char *host, int host_port)
{
	struct portmap_key key;

	portmap_key_of(&key, protocol, host, host_port);
	bpf_map_delete_elem(bpf_map__fd(skeleton->maps.portmaps), &key);
}

uint64_t fixture_mapping_flows(int protocol, const char *host, int host_port)
{
	struct portmap_succession entry;
	struct portmap_key key;

	portmap_key_of(&key, protocol, host, host_port);
	if (bpf_map_lookup_elem(bpf_map__fd(skeleton->maps.portmaps), &key, &entry))
		err(1, "mapping of port %d", host_port);
	return entry.now.flows;
}

void fixture_set_masquerade_ports(uint16_t first, uint16_t last)
{
	struct meta meta = {.layout = LAYOUT, .complete = 1, .port_seed = PORT_SEED};
	uint32_t only = 0;

	meta.masquerade_ports[0].first = first;
	meta.masquerade_ports[0].last = last;
	update(skeleton->maps.meta, &only, &meta);
}

static struct meta read_meta(void)
{
	struct meta meta;
	uint32_t only = 0;

	if (bpf_map_lookup_elem(bpf_map__fd(skeleton->maps.meta), &only, &meta))
		err(1, "reading meta");
	return meta;
}

void fixture_drop_offload(void)
{
	struct meta meta = read_meta();
	uint32_t only = 0;

	meta.offload_dropped = fixture_second();
	update(skeleton->maps.meta, &only, &meta);
}

static struct interface read_interface(enum device device)
{
	uint32_t ifindex = device;
	struct interface interface;

	if (bpf_map_lookup_elem(bpf_map__fd(skeleton->maps.interfaces), &ifindex, &interface))
		err(1, "reading an interface");
	return interface;
}

void fixture_without_fast_path(enum device device)
{
	uint32_t ifindex = device;
	struct interface interface = read_interface(device);

	interface.without_fast_path = 1;
	update(skeleton->maps.interfaces, &ifindex, &interface);
}

void fixture_refuse_one(enum device device)
{
	uint32_t number = ONE, ifindex = device;
	struct interface interface = read_interface(device);
	struct slot slot;

	if (bpf_map_lookup_elem(bpf_map__fd(skeleton->maps.slots), &number, &slot))
		err(1, "reading a slot");
	slot.network = 1;
	interface.refusing |= 1 << slot.network;
	update(skeleton->maps.slots, &number, &slot);
	update(skeleton->maps.interfaces, &ifindex, &interface);
}

void fixture_delete_interface(enum device device)
{
	uint32_t ifindex = device;

	if (bpf_map_delete_elem(bpf_map__fd(skeleton->maps.interfaces), &ifindex))
		err(1, "deleting an interface");
}

void fixture_tell_of_deletion(void)
{
	struct meta meta = read_meta();
	uint32_t only = 0;

	meta.interfaces_forgotten++;
	update(skeleton->maps.meta, &only, &meta);
}

void fixture_set_addresses(enum device device, const char *address4, const char *address6)
{
	uint32_t ifindex = device;
	struct interface interface = read_interface(device);

	fixture_address(interface.address4, address4);
	fixture_address(interface.address6, address6);
	update(skeleton->maps.interfaces, &ifindex, &interface);
}

static void classify(enum device device, enum interface_role role, enum container owner)
{
	struct interface interface = {.owner = fixture_owner(owner), .role = role};
	uint32_t ifindex = device;

	if (role == ROLE_PORT) {
		interface.bridge_ifindex = BRIDGE;
		memcpy(interface.bridge_mac, host_mac(BRIDGE), MAC_SIZE);
	}
	update(skeleton->maps.interfaces, &ifindex, &interface);
}

static void classify_all(void)
{
	classify(UPLINK, ROLE_UPLINK, NOBODY);
	classify(SECOND_UPLINK, ROLE_UPLINK, NOBODY);
	classify(BRIDGE, ROLE_BRIDGE, NOBODY);
	classify(VETH_ONE, ROLE_PORT, ONE);
	classify(VETH_TWO, ROLE_PORT, TWO);
	classify(VETH_QUIET, ROLE_PORT, QUIET);
	classify(VETH_ROUTED, ROLE_ROUTED, ROUTED);
	fixture_set_addresses(UPLINK, v4_host, v6_host);
	fixture_set_addresses(SECOND_UPLINK, v4_second_uplink, v6_second_uplink);
	fixture_set_addresses(BRIDGE, v4_bridge, v6_bridge);
	fixture_set_addresses(VETH_ROUTED, "10.20.0.1", "fd00:20::1");
}

static void add_containers(void)
{
	for (enum container container = ONE; container <= ROUTED; container++) {
		generations[container] = 40 + container;
		fast_paths[container] = FAST_PATH_OFF;
		containers[container] = container;
		write_slot(container, true);
		set_endpoints(container);
	}
}

static void add_mappings(void)
{
	static const int protocols[] = {IPPROTO_TCP, IPPROTO_UDP, IPPROTO_SCTP};

	for (int i = 0; i < 3; i++) {
		fixture_map_port(protocols[i], "0.0.0.0", 8080, v4_container_one, 80, ONE);
		fixture_map_port(protocols[i], "::", 8080, v6_container_one, 80, ONE);
		/* Published by a container that is not masqueraded */
		fixture_map_port(protocols[i], "0.0.0.0", 7070, v4_container_quiet, 70, QUIET);
		/* A port of one address only, beside one of any address */
		fixture_map_port(protocols[i], "0.0.0.0", 9090, v4_container_one, 90, ONE);
		fixture_map_port(protocols[i], v4_host_other, 9090, v4_container_two, 91, TWO);
		/* One family only */
		fixture_map_port(protocols[i], "0.0.0.0", 4444, v4_container_one, 44, ONE);
		fixture_map_port(protocols[i], "::", 6666, v6_container_one, 66, ONE);
		fixture_map_port(protocols[i], "0.0.0.0", 5050, v4_container_routed, 50, ROUTED);
		fixture_map_port(protocols[i], "::", 5050, v6_container_routed, 50, ROUTED);
	}
}

static void read_held(uint32_t place, struct held_fragment *fragment)
{
	if (bpf_map_lookup_elem(bpf_map__fd(skeleton->maps.held), &place, fragment))
		err(1, "reading a held fragment");
}

#define SECOND 1000000000LL

static int64_t nanoseconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * SECOND + now.tv_nsec;
}

int fixture_count_held(void)
{
	static struct held_fragment fragment;
	int count = 0;

	for (uint32_t place = 0; place < MAX_HELD; place++) {
		read_held(place, &fragment);
		count += fragment.ticket &&
			 nanoseconds_now() - (int64_t)fragment.since <= 5 * SECOND;
	}
	return count;
}

static struct fragment_row written_rows[FRAGMENT_ROWS];
static uint32_t row_numbers[FRAGMENT_ROWS];

static void write_fragment_rows(void)
{
	uint32_t count = FRAGMENT_ROWS;

	for (uint32_t number = 0; number < count; number++)
		row_numbers[number] = number;
	if (bpf_map_update_batch(bpf_map__fd(skeleton->maps.fragments), row_numbers, written_rows,
				 &count, NULL))
		err(1, "writing fragments");
}

static void age_records(int64_t time)
{
	uint32_t count = FRAGMENT_ROWS, next;

	if (bpf_map_lookup_batch(bpf_map__fd(skeleton->maps.fragments), NULL, &next, row_numbers,
				 written_rows, &count, NULL) &&
	    count != FRAGMENT_ROWS)
		err(1, "reading fragments");
	for (uint32_t i = 0; i < count * FRAGMENT_PLACES; i++)
		written_rows[i / FRAGMENT_PLACES].places[i % FRAGMENT_PLACES].last_seen -=
			(uint64_t)time;
	write_fragment_rows();
}

void fixture_age_fragments(int seconds)
{
	static struct held_fragment held;

	age_records(seconds * SECOND);
	for (uint32_t place = 0; place < MAX_HELD; place++) {
		read_held(place, &held);
		held.since -= (uint64_t)(seconds * SECOND);
		update(skeleton->maps.held, &place, &held);
	}
}

/* Writes the many places only if a fragment may have been held since the last call. */
static void clear_fragments(void)
{
	static const struct held_fragment nothing;
	static uint64_t held_before;
	struct counters counters;

	memset(written_rows, 0, sizeof(written_rows));
	write_fragment_rows();
	fixture_read_counters(&counters);
	if (counters.fragment_held == held_before)
		return;
	held_before = counters.fragment_held;
	for (uint32_t place = 0; place < MAX_HELD; place++)
		update(skeleton->maps.held, &place, &nothing);
}

void fixture_clear_flows(void)
{
	records_clear();
}

void fixture_reset(void)
{
	skeleton->data->memos_until[OUTWARDS] = 0;
	skeleton->data->memos_until[INWARDS] = 0;
	records_forget_memos();
	host_forget_routes(skeleton->maps.route_answers);
	host_forget_routes(skeleton->maps.renewals);
	host_forget_routes(skeleton->maps.host_answers);
	records_clear_bits(); /* The programs never do. */
	records_clear();
	memset(policies, 0, sizeof(policies));
	clear_fragments();
	clear(skeleton->maps.portmaps, sizeof(struct portmap_key));
	clear(skeleton->maps.nat_ports, sizeof(struct portmap_key));
	clear(skeleton->maps.endpoints, sizeof(struct endpoint_key));
	clear(skeleton->maps.interfaces, sizeof(uint32_t));
	clear(skeleton->maps.policies, sizeof(uint32_t));
	clear(skeleton->maps.host_addresses, sizeof(struct host_address_key));
	add_host_addresses();
	add_containers();
	classify_all();
	add_mappings();
	fixture_set_masquerade_ports(20000, 29999);
}

uint32_t fixture_second(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint32_t)now.tv_sec;
}

void fixture_wait_for_next_second(void)
{
	const struct timespec a_moment = {.tv_nsec = 5000000};
	uint32_t second = fixture_second();

	while (fixture_second() == second)
		nanosleep(&a_moment, NULL);
}

void fixture_read_counters(struct counters *sum)
{
	size_t fields = sizeof(*sum) / sizeof(uint64_t);
	int cpus = libbpf_num_possible_cpus();
	uint64_t *total = (uint64_t *)sum;
	uint32_t only = 0;
	uint64_t *values;

	memset(sum, 0, sizeof(*sum));
	values = cpus > 0 ? calloc((size_t)cpus, sizeof(*sum)) : NULL;
	if (!values || bpf_map_lookup_elem(bpf_map__fd(skeleton->maps.counters), &only, values))
		err(1, "reading the counters");
	for (size_t i = 0; i < fields * (size_t)cpus; i++)
		total[i % fields] += values[i];
	free(values);
}
