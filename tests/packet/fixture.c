/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fixture.c - loads the programs, fills their maps directly, reads them back. */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <err.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "datapath/device_layout.h"
#include "bpf/portmap.skel.h"
#include "row.h"

#define MARK 0x5a5a /* what somebody else wrote on the packet */

/* Linux 6.11; older headers lack it: the frame comes in with a CHECKSUM_COMPLETE sum, as
 * from a network card, and EBADMSG says that it no longer fits what came out. */
#define TEST_CHECKSUM_COMPLETE (1U << 2)

static uint32_t run_flags;
static struct __sk_buff last_context;
static struct portmap_bpf *skeleton;
static uint32_t generations[ROUTED + 1];
static enum fast_path fast_paths[ROUTED + 1];
static uint64_t containers[ROUTED + 1]; /* whose attachment it is */

/* Not all kernels let the programs see what hangs at a device. */
static void let_see(void)
{
#ifndef FALLBACKS
	struct device_layout layout;

	device_layout_find(&layout);
	skeleton->rodata->device_layout = layout;
#endif
}

void fixture_load(void)
{
	skeleton = portmap_bpf__open();
	if (!skeleton)
		err(1, "opening the programs");
	let_see();
	if (portmap_bpf__load(skeleton))
		err(1, "loading the programs");
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
			    .ctx_size_out = sizeof(context_out), .repeat = 1, .flags = run_flags, );

	if (bpf_prog_test_run_opts(program_fd(hook), &options))
		return errno == EBADMSG ? FIXTURE_BAD_SUM : FIXTURE_REFUSED - errno;
	memcpy(frame->bytes, out, options.data_size_out);
	frame->length = options.data_size_out;
	last_context = context_out;
	if (options.retval != TC_ACT_REDIRECT &&
	    (context_out.mark != MARK || context_out.priority != MARK))
		return FIXTURE_MARKED;
	return (int)options.retval;
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

static void clear(const struct bpf_map *map, size_t key_size)
{
	int fd = bpf_map__fd(map);
	uint8_t key[256];

	if (key_size > sizeof(key))
		errx(1, "key of map %s is too big", bpf_map__name(map));
	while (bpf_map_get_next_key(fd, NULL, key) == 0)
		bpf_map_delete_elem(fd, key);
}

static struct owner owner_of(enum container container)
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
			    .fast_path = fast_paths[container]};
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
	struct slot slot = {
		.generation = generations[ONE], .live = 1, .ifindex = VETH_ONE, .fast_path = mode};
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

void fixture_set_endpoint(const char *address, enum container owner, uint8_t prefix_length,
			  bool masquerade)
{
	struct endpoint endpoint = {
		.owner = owner_of(owner), .prefix_length = prefix_length, .masquerade = masquerade};
	struct endpoint_key key;

	fixture_address(key.address, address);
	update(skeleton->maps.endpoints, &key, &endpoint);
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

	policy.owner = owner_of(owner);
	update(skeleton->maps.policies, &slot, &policy);
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

static void publish_port(int host_port)
{
	__u32 word = (__u32)host_port / 64;
	__u64 bits = 0;

	bpf_map_lookup_elem(bpf_map__fd(skeleton->maps.published_ports), &word, &bits);
	bits |= 1ULL << (host_port % 64);
	update(skeleton->maps.published_ports, &word, &bits);
}

void fixture_map_port(int protocol, const char *host, int host_port, const char *container,
		      int container_port, enum container owner)
{
	struct portmap portmap = {.owner = owner_of(owner),
				  .container_port = (uint16_t)container_port};
	struct portmap_key key;

	portmap_key_of(&key, protocol, host, host_port);
	fixture_address(portmap.container_address, container);
	publish_port(host_port);
	update(skeleton->maps.portmaps, &key, &portmap);
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
	struct portmap portmap;
	struct portmap_key key;

	portmap_key_of(&key, protocol, host, host_port);
	if (bpf_map_lookup_elem(bpf_map__fd(skeleton->maps.portmaps), &key, &portmap))
		err(1, "mapping of port %d", host_port);
	return portmap.flows;
}

void fixture_set_masquerade_ports(uint16_t first, uint16_t last)
{
	struct meta meta = {.layout = LAYOUT, .complete = 1};
	uint32_t only = 0;

	meta.masquerade_ports[0].first = first;
	meta.masquerade_ports[0].last = last;
	update(skeleton->maps.meta, &only, &meta);
}

void fixture_drop_offload(void)
{
	struct meta meta;
	uint32_t only = 0;

	if (bpf_map_lookup_elem(bpf_map__fd(skeleton->maps.meta), &only, &meta))
		err(1, "reading meta");
	meta.offload_dropped = fixture_second();
	update(skeleton->maps.meta, &only, &meta);
}

void fixture_without_fast_path(enum device device)
{
	uint32_t ifindex = device;
	struct interface interface;

	if (bpf_map_lookup_elem(bpf_map__fd(skeleton->maps.interfaces), &ifindex, &interface))
		err(1, "reading an interface");
	interface.without_fast_path = 1;
	update(skeleton->maps.interfaces, &ifindex, &interface);
}

void fixture_set_addresses(enum device device, const char *address4, const char *address6)
{
	uint32_t ifindex = device;
	struct interface interface;

	if (bpf_map_lookup_elem(bpf_map__fd(skeleton->maps.interfaces), &ifindex, &interface))
		err(1, "reading an interface");
	fixture_address(interface.address4, address4);
	fixture_address(interface.address6, address6);
	update(skeleton->maps.interfaces, &ifindex, &interface);
}

static void classify(enum device device, enum interface_role role, enum container owner)
{
	struct interface interface = {.owner = owner_of(owner), .role = role};
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
	}
	fixture_set_endpoint(v4_container_one, ONE, 16, true);
	fixture_set_endpoint(v6_container_one, ONE, 64, true);
	fixture_set_endpoint(v4_container_two, TWO, 16, true);
	fixture_set_endpoint(v6_container_two, TWO, 64, true);
	fixture_set_endpoint(v4_container_quiet, QUIET, 16, false);
	fixture_set_endpoint(v6_container_quiet, QUIET, 64, false);
	fixture_set_endpoint(v4_container_routed, ROUTED, 24, true);
	fixture_set_endpoint(v6_container_routed, ROUTED, 64, true);
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

static void clear_noticed(void)
{
	struct noticed noticed = {0};
	uint32_t only = 0;

	update(skeleton->maps.noticed, &only, &noticed);
}

void fixture_notice_port(uint16_t port)
{
	struct noticed noticed = {0};
	uint32_t only = 0;

	noticed.masquerade_ports[port / 64] = 1ULL << port % 64;
	update(skeleton->maps.noticed, &only, &noticed);
}

static void read_held(uint32_t place, struct held_fragment *fragment)
{
	if (bpf_map_lookup_elem(bpf_map__fd(skeleton->maps.held), &place, fragment))
		err(1, "reading a held fragment");
}

int fixture_count_held(void)
{
	static struct held_fragment fragment;
	struct timespec now;
	int count = 0;

	clock_gettime(CLOCK_MONOTONIC, &now);

	for (uint32_t place = 0; place < MAX_HELD; place++) {
		read_held(place, &fragment);
		count += fragment.ticket && (uint32_t)now.tv_sec - fragment.since <= 5;
	}
	return count;
}

int fixture_count_fragmented(void)
{
	int fd = bpf_map__fd(skeleton->maps.fragments), count = 0;
	struct fragment_key key, *last = NULL;

	for (; bpf_map_get_next_key(fd, last, &key) == 0; last = &key)
		count++;
	return count;
}

/* An update puts an entry where a walk may come by again: first all keys. */
static void age_records(uint32_t seconds)
{
	int fd = bpf_map__fd(skeleton->maps.fragments), count = 0;
	static struct fragment_key keys[MAX_FRAGMENTED];
	struct fragment fragment;

	while (count < MAX_FRAGMENTED &&
	       bpf_map_get_next_key(fd, count ? &keys[count - 1] : NULL, &keys[count]) == 0)
		count++;
	for (int i = 0; i < count; i++) {
		if (bpf_map_lookup_elem(fd, &keys[i], &fragment))
			continue;
		fragment.last_seen -= seconds;
		update(skeleton->maps.fragments, &keys[i], &fragment);
	}
}

void fixture_age_fragments(uint32_t seconds)
{
	static struct held_fragment held;

	age_records(seconds);
	for (uint32_t place = 0; place < MAX_HELD; place++) {
		read_held(place, &held);
		held.since -= seconds;
		update(skeleton->maps.held, &place, &held);
	}
}

/* The many places are written only where something may have been left there. */
static void clear_fragments(void)
{
	static const struct held_fragment nothing;
	static uint64_t held_before;
	struct counters counters;

	clear(skeleton->maps.fragments, sizeof(struct fragment_key));
	fixture_read_counters(&counters);
	if (counters.fragment_held == held_before)
		return;
	held_before = counters.fragment_held;
	for (uint32_t place = 0; place < MAX_HELD; place++)
		update(skeleton->maps.held, &place, &nothing);
}

void fixture_clear_flows(void)
{
	clear(skeleton->maps.flows, sizeof(struct flow_key));
	clear(skeleton->maps.flows_new, sizeof(struct flow_key));
}

void fixture_let_leave_stack(void)
{
	int fd = bpf_map__fd(skeleton->maps.flows);
	struct flow_key key, *last = NULL;
	struct flow flow;

	for (; bpf_map_get_next_key(fd, last, &key) == 0; last = &key) {
		if (bpf_map_lookup_elem(fd, &key, &flow))
			err(1, "reading a flow");
		flow.left_stack = fixture_second();
		if (bpf_map_update_elem(fd, &key, &flow, BPF_EXIST))
			err(1, "writing a flow");
	}
}

static uint32_t last_taken_pair;

static void take_flow_pair(uint32_t number, const struct flow_pair *pair)
{
	update(skeleton->maps.flow_pairs, &number, pair);
	if (number > last_taken_pair)
		last_taken_pair = number;
}

static void clear_flow_pairs(void)
{
	const struct flow_pair free = {0};
	uint32_t all = bpf_map__max_entries(skeleton->maps.flow_pairs) - 1, last = last_taken_pair;

	if (last < skeleton->data->clock_hand + 1)
		last = skeleton->data->clock_hand + 1;
	/* The hand has been all round. */
	if (skeleton->data->clock_swept || last > all)
		last = all;
	for (uint32_t number = 1; number <= last; number++)
		take_flow_pair(number, &free);
	last_taken_pair = 0;
	skeleton->data->clock_hand = 0;
	skeleton->data->clock_swept = 0;
}

void fixture_take_flow_pair(const struct entry *entry)
{
	struct flow_pair pair = {.state = PAIR_TAKEN, .owner = owner_of(entry->owner)};

	fixture_key(entry, 0, &pair.key);
	take_flow_pair(entry->pair, &pair);
}

int32_t fixture_flow_pairs_of(enum container container)
{
	uint32_t number = container;
	struct slot slot;

	if (bpf_map_lookup_elem(bpf_map__fd(skeleton->maps.slots), &number, &slot))
		err(1, "reading a slot");
	return (int32_t)slot.flows;
}

void fixture_let_second_pass(void)
{
	skeleton->data->clock_swept = 0;
}

void fixture_reset(void)
{
	skeleton->data->shortcuts_era++;
	clear_flow_pairs();
	clear_noticed();
	fixture_clear_flows();
	clear_fragments();
	clear(skeleton->maps.portmaps, sizeof(struct portmap_key));
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

static uint16_t port_of(int port, int chosen)
{
	return (uint16_t)(port == CHOSEN ? chosen : port);
}

void fixture_key(const struct entry *entry, int chosen, struct flow_key *key)
{
	memset(key, 0, sizeof(*key));
	fixture_address(key->source, entry->from);
	fixture_address(key->destination, entry->to);
	key->source_port = port_of(entry->from_port, chosen);
	key->destination_port = port_of(entry->to_port, chosen);
	key->protocol = (enum protocol)entry->protocol;
	key->direction = entry->direction;
}

static const struct bpf_map *table_map(enum table table)
{
	return table == ANSWERED ? skeleton->maps.flows : skeleton->maps.flows_new;
}

/* As it was found in the second `looked_up` ago */
static void put_path(struct flow *flow, const struct entry *entry, uint32_t now)
{
	bool in = entry->path == PATH_CONTAINER;

	flow->path = entry->path;
	flow->left_stack = entry->seen ? now + 1 - entry->seen : 0;
	flow->out_looked_up = entry->looked_up ? now + 1 - entry->looked_up : 0;
	flow->out_ifindex = entry->out;
	if (entry->path < PATH_CONTAINER)
		return;
	flow->path_mtu = entry->path_mtu ? entry->path_mtu : 1500;
	memcpy(flow->path_source,
	       host_mac(!in                         ? entry->out
			: entry->out == VETH_ROUTED ? VETH_ROUTED
						    : BRIDGE),
	       MAC_SIZE);
	if (!entry->neighbour_unknown)
		memcpy(flow->path_destination,
		       in ? host_container_mac(entry->out) : host_neighbour_mac(), MAC_SIZE);
}

uint32_t fixture_second(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint32_t)now.tv_sec;
}

void fixture_put(const struct entry *entry)
{
	struct flow flow = {.owner = owner_of(entry->owner)};
	struct flow_key key;

	flow.last_seen = fixture_second() - entry->idle;
	flow.owner.generation -= entry->older_generation;
	fixture_key(entry, 0, &key);
	fixture_address(flow.address, entry->address);
	flow.port = (uint16_t)entry->port;
	flow.peer_port = (uint16_t)entry->peer_port;
	flow.kind = entry->kind;
	flow.reply = entry->reply;
	flow.unconfirmed = entry->unconfirmed;
	flow.state = entry->state;
	flow.answered = entry->answered;
	flow.pair = entry->pair;
	put_path(&flow, entry, fixture_second());
	update(table_map(entry->table), &key, &flow);
}

void fixture_put_pair(const struct entry pair[2], enum container owner, bool older_generation,
		      uint32_t idle, enum flow_state state)
{
	for (int i = 0; i < 2; i++) {
		struct entry entry = pair[i];

		entry.owner = owner;
		entry.older_generation = older_generation;
		entry.idle = idle;
		entry.state = state;
		entry.answered = true;
		fixture_put(&entry);
	}
}

void fixture_put_offloaded(const struct entry pair[2], enum container owner)
{
	for (int i = 0; i < 2; i++) {
		struct entry entry = pair[i];

		entry.owner = owner;
		entry.answered = true;
		if (!entry.state)
			entry.state = STATE_ESTABLISHED;
		fixture_put(&entry);
	}
}

void fixture_remove(const struct entry *entry)
{
	struct flow_key key;

	fixture_key(entry, 0, &key);
	if (bpf_map_delete_elem(bpf_map__fd(table_map(entry->table)), &key))
		err(1, "removing an entry that should be there");
}

static void read_table(enum table table, struct stored_entries *stored)
{
	int fd = bpf_map__fd(table_map(table));
	struct flow_key key, *last = NULL;

	while (bpf_map_get_next_key(fd, last, &key) == 0 && stored->count < MAX_ENTRIES) {
		struct stored_entry *entry = &stored->entries[stored->count++];

		entry->table = table;
		entry->key = key;
		if (bpf_map_lookup_elem(fd, &key, &entry->flow))
			err(1, "reading a flow");
		last = &entry->key;
	}
}

void fixture_read_flows(struct stored_entries *stored)
{
	memset(stored, 0, sizeof(*stored));
	read_table(NEW, stored);
	read_table(ANSWERED, stored);
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
