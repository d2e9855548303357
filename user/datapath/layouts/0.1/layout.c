/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* layout.c - reads the maps of bpf-portmap 0.1, and writes ours from them. */
#include "datapath/layouts/0.1/layout.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "datapath/layouts/0.1/abi.h"
#include "datapath/layouts/0.1/give.h"
#include "datapath/load/bpf_error.h"
#include "datapath/load/maps.h"
#include "datapath/records/attachments.h"
#include "lib/cleanup.h"
#include "lib/digest.h"
#include "lib/memory.h"

#define FLOW_PAIR_SIZE 56

static const struct older_map maps_0_1[OLD_MAP_COUNT] = {
	[OLD_META] = {"meta", sizeof(__u32), sizeof(struct old_meta), true, false},
	[OLD_SLOTS] = {"slots", sizeof(__u32), sizeof(struct old_slot), true, false},
	[OLD_INTERFACES] = {"interfaces", sizeof(__u32), sizeof(struct old_interface), true, false},
	[OLD_ATTACHMENTS] = {"attachments", sizeof(struct attachment_key),
			     sizeof(struct old_attachment), true, false},
	[OLD_FLOWS] = {"flows", sizeof(struct old_flow_key), sizeof(struct old_flow), false, true},
	[OLD_FLOWS_NEW] = {"flows_new", sizeof(struct old_flow_key), sizeof(struct old_flow), false,
			   true},
	[OLD_NOTICED] = {"noticed", sizeof(__u32), sizeof(struct old_noticed), false, false},
	[OLD_FLOW_PAIRS] = {"flow_pairs", sizeof(__u32), FLOW_PAIR_SIZE, false, true},
};

/* In `endpoints` layout 1 has zeros where `strict` and `shared` are. */
static const enum map_number shared_0_1[] = {
	MAP_PORTMAPS, MAP_PUBLISHED_PORTS, MAP_ENDPOINTS,    MAP_HOST_ADDRESSES,
	MAP_NETWORKS, MAP_POLICIES,        MAP_SOCKET_FLOWS, MAP_COUNT,
};

/* One map while it is read. */
struct reading {
	int fd;
	const struct older_map *map;
	int (*visit)(const void *key, const void *value, void *context, struct cni_error *err);
	void *context;
};

#define BATCH 4096U

static int refuse_read(const struct older_map *map, struct cni_error *err)
{
	return bpf_error_set(err, errno, "cannot read the map %s of bpf-portmap 0.1", map->name);
}

static int visit_batch(const struct reading *reading, const char *keys, const char *values,
		       uint32_t count, struct cni_error *err)
{
	for (uint32_t i = 0; i < count; i++)
		if (reading->visit(keys + (size_t)i * reading->map->key_size,
				   values + (size_t)i * reading->map->value_size, reading->context,
				   err))
			return -1;
	return 0;
}

static int read_all(const struct reading *reading, struct cni_error *err)
{
	cleanup_free char *keys = need(calloc(BATCH, reading->map->key_size));
	cleanup_free char *values = need(calloc(BATCH, reading->map->value_size));
	uint32_t position[16] = {0}, *from = NULL, count;
	bool last = false;

	while (!last) {
		count = BATCH;
		if (bpf_map_lookup_batch(reading->fd, from, position, keys, values, &count, NULL)) {
			last = errno == ENOENT;
			if (!last)
				return refuse_read(reading->map, err);
		}
		from = position;
		if (visit_batch(reading, keys, values, count, err))
			return -1;
	}
	return 0;
}

/* What records are copied from and to. */
struct copying {
	const int *maps;
	const struct objects *to;
};

static int copy(const struct copying *copying, enum old_map map,
		int (*visit)(const void *key, const void *value, void *context,
			     struct cni_error *err),
		struct cni_error *err)
{
	struct reading reading = {copying->maps[map], &maps_0_1[map], visit, (void *)copying};

	return read_all(&reading, err);
}

static bool has_policy(const struct objects *to, struct owner owner)
{
	struct policy policy;

	return policy_read(to, owner, &policy);
}

/* The kernel refuses an interface that is gone: then the owner has no veth, which is true. Another
 * interface may have got its number. */
static void note_veth(const struct copying *copying, uint32_t number, const struct old_slot *old)
{
	struct owner owner = {number, old->generation};
	struct old_interface interface;
	uint32_t ifindex = old->ifindex;

	if (old->live &&
	    !bpf_map_lookup_elem(copying->maps[OLD_INTERFACES], &ifindex, &interface) &&
	    owner_is(interface.owner, owner))
		bpf_map_update_elem(copying->to->maps[MAP_VETHS], &number, &ifindex, BPF_ANY);
}

static int copy_slot(const void *key, const void *value, void *context, struct cni_error *err)
{
	const struct copying *copying = context;
	const struct old_slot *old = value;
	uint32_t number = *(const uint32_t *)key;
	struct slot slot = {
		.generation = old->generation,
		.live = old->live,
		.ifindex = old->ifindex,
		.fast_path = (enum fast_path)old->fast_path,
	};
	struct attachment_name name;

	/* Slot 0 is nobody's. */
	if (!number || !old->generation)
		return 0;
	slot.has_policy = has_policy(copying->to, (struct owner){number, old->generation});
	memcpy(slot.host_mac, old->host_mac, sizeof(slot.host_mac));
	memcpy(slot.gateway_mac, old->gateway_mac, sizeof(slot.gateway_mac));
	memcpy(slot.attachment, old->attachment, sizeof(slot.attachment));
	if (attachment_name_split(slot.attachment, &name))
		slot.container =
			digest_add(DIGEST_OF_NOTHING, name.container_id, strlen(name.container_id));
	note_veth(copying, number, old);
	return slot_write(copying->to, number, &slot, err);
}

static int copy_interface(const void *key, const void *value, void *context, struct cni_error *err)
{
	const struct copying *copying = context;
	const struct old_interface *old = value;
	struct interface interface = {
		.owner = old->owner,
		.role = (enum interface_role)old->role,
		.without_link_header = old->without_link_header,
		.bridge_ifindex = old->bridge_ifindex,
		.addresses_excluded = old->addresses_excluded,
		.without_fast_path = old->without_fast_path,
	};

	memcpy(interface.bridge_mac, old->bridge_mac, sizeof(interface.bridge_mac));
	memcpy(interface.address4, old->address4, sizeof(interface.address4));
	memcpy(interface.address6, old->address6, sizeof(interface.address6));
	return interface_write(copying->to, *(const uint32_t *)key, &interface, err);
}

static int copy_attachment(const void *key, const void *value, void *context, struct cni_error *err)
{
	const struct copying *copying = context;
	const struct old_attachment *old = value;
	struct attachment attachment = {
		.owner = old->owner,
		.since = old->since,
		.ifindex = old->ifindex,
		.state = (enum attachment_state)old->state,
		.host_ports = old->host_ports,
		.endpoints = old->endpoints,
	};

	memcpy(attachment.host_mac, old->host_mac, sizeof(attachment.host_mac));
	return attachment_write(copying->to, key, &attachment, err);
}

/* `endpoint_addresses` is new: a bit for each endpoint. */
static enum walk mark_endpoint(const void *key, const void *value, void *context,
			       struct cni_error *err)
{
	uint64_t halves[2], *marks = context;
	uint16_t bit;

	memcpy(halves, key, sizeof(halves));
	bit = address_hash(halves[0], halves[1]);
	marks[bit / 64] |= 1ULL << (bit % 64);
	return WALK_ON;
}

static int mark_endpoints(const struct objects *to, struct cni_error *err)
{
	uint64_t marks[PORT_WORDS] = {0}, before;

	if (map_walk(to, MAP_ENDPOINTS, mark_endpoint, marks, err))
		return -1;
	for (uint32_t word = 0; word < PORT_WORDS; word++) {
		if (!marks[word] ||
		    bpf_map_lookup_elem(to->maps[MAP_ENDPOINT_ADDRESSES], &word, &before))
			continue;
		marks[word] |= before;
		if (map_write(to, MAP_ENDPOINT_ADDRESSES, &word, &marks[word], err))
			return -1;
	}
	return 0;
}

static int copy_meta(const struct copying *copying, struct cni_error *err)
{
	struct old_meta old;
	struct meta meta;
	uint32_t only = 0;

	if (bpf_map_lookup_elem(copying->maps[OLD_META], &only, &old))
		return refuse_read(&maps_0_1[OLD_META], err);
	if (!meta_read(copying->to, &meta))
		return map_refuse_read(MAP_META, err);
	meta.generation = old.generation;
	meta.next_slot = old.next_slot;
	meta.port_seed = old.port_seed;
	meta.offload_dropped = old.offload_dropped;
	memcpy(meta.masquerade_ports, old.masquerade_ports, sizeof(meta.masquerade_ports));
	return meta_write(copying->to, &meta, err);
}

/* Interfaces come last: where their entries are, the programs belong. */
static int copy_records(const int *maps, const struct objects *to, struct cni_error *err)
{
	const struct copying copying = {maps, to};

	return copy_meta(&copying, err) || mark_endpoints(to, err) ||
			       copy(&copying, OLD_SLOTS, copy_slot, err) ||
			       copy(&copying, OLD_ATTACHMENTS, copy_attachment, err) ||
			       copy(&copying, OLD_INTERFACES, copy_interface, err)
		       ? -1
		       : 0;
}

static bool add_marks(__u64 *to, const __u64 *from)
{
	bool added = false;

	for (size_t word = 0; word < PORT_WORDS; word++) {
		added |= from[word] & ~to[word];
		to[word] |= from[word];
	}
	return added;
}

/* What programs here set while this writes is lost; nearly always there is nothing to write. */
static void copy_marks(const int *maps, const struct objects *to)
{
	cleanup_free struct old_noticed *old = need(calloc(1, sizeof(*old)));
	cleanup_free struct noticed *noticed = need(calloc(1, sizeof(*noticed)));
	uint32_t only = 0;
	bool added;

	if (bpf_map_lookup_elem(maps[OLD_NOTICED], &only, old))
		return;
	noticed_read(to, noticed);
	added = old->masquerade_all & ~noticed->masquerade_all;
	noticed->masquerade_all |= old->masquerade_all;
	added |= add_marks(noticed->local_udp_ports, old->local_udp_ports);
	added |= add_marks(noticed->local_container_ports, old->local_container_ports);
	if (added)
		bpf_map_update_elem(to->maps[MAP_NOTICED], &only, noticed, BPF_ANY);
}

/* Each connection has two entries. */
static uint32_t room(const int *maps)
{
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info);

	if (bpf_obj_get_info_by_fd(maps[OLD_FLOWS], &info, &size))
		return 0;
	return info.max_entries / 2;
}

/* Connections while they are read. */
struct connections {
	const int *maps;
	enum old_map map;
	taken_over_visit *visit;
	void *context;
};

/* Returns whether the other entry is there: that of packets that come in. */
static bool find_other_half(const struct connections *connections, const struct old_flow_key *key,
			    const struct old_flow *flow, struct old_flow *other)
{
	struct old_flow_key other_key = {
		.source_port = flow->peer_port,
		.destination_port = flow->port,
		.protocol = key->protocol,
		.direction = OLD_DIRECTION_IN,
	};

	memcpy(other_key.source, key->destination, sizeof(other_key.source));
	memcpy(other_key.destination, flow->address, sizeof(other_key.destination));
	return !bpf_map_lookup_elem(connections->maps[connections->map], &other_key, other);
}

static uint32_t state_of(enum old_map map, const struct old_flow *out, const struct old_flow *in)
{
	uint32_t state = 0;

	if (map == OLD_FLOWS)
		state |= STATE_REPLIED | STATE_ASSURED | STATE_DATA;
	if (out->answered || in->answered)
		state |= STATE_REPLIED;
	if (!out->reply || out->kind == FLOW_HOST || out->kind == FLOW_FOREIGN)
		state |= STATE_CHARGED_OUT;
	if (out->fin || out->state == OLD_STATE_CLOSING)
		state |= STATE_FIN_INSIDE;
	if (in->fin || out->state == OLD_STATE_CLOSING)
		state |= STATE_FIN_OUTSIDE;
	return state;
}

/* The entry of packets that leave: its tuple is the one without NAT. */
static int visit_flow(const void *entry_key, const void *value, void *context,
		      struct cni_error *err)
{
	const struct connections *connections = context;
	const struct old_flow_key *key = entry_key;
	const struct old_flow *out = value;
	struct taken_over taken = {0};
	struct old_flow in;

	if (key->direction != OLD_DIRECTION_OUT || out->unconfirmed)
		return 0;
	if (!find_other_half(connections, key, out, &in))
		memset(&in, 0, sizeof(in));
	memcpy(taken.key.inside, key->source, sizeof(taken.key.inside));
	memcpy(taken.key.outside, key->destination, sizeof(taken.key.outside));
	taken.key.inside_port = key->source_port;
	taken.key.outside_port = key->destination_port;
	taken.key.protocol = (enum protocol)key->protocol;
	taken.owner = out->owner;
	memcpy(taken.external_address, out->address, sizeof(taken.external_address));
	taken.external_port = out->port;
	taken.peer_port = out->peer_port;
	taken.state = state_of(connections->map, out, &in);
	taken.last_seen =
		(int32_t)(in.last_seen - out->last_seen) > 0 ? in.last_seen : out->last_seen;
	taken.kind = (enum flow_kind)out->kind;
	taken.begun_inside = !out->reply;
	taken.packets[OUTWARDS] = (uint32_t)out->packets;
	taken.packets[INWARDS] = (uint32_t)in.packets;
	taken.bytes[OUTWARDS] = out->bytes;
	taken.bytes[INWARDS] = in.bytes;
	return connections->visit(&taken, connections->context, err);
}

static int walk_connections(const int *maps, taken_over_visit *visit, void *context,
			    struct cni_error *err)
{
	static const enum old_map tables[] = {OLD_FLOWS, OLD_FLOWS_NEW};

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		struct connections connections = {maps, tables[i], visit, context};
		struct reading reading = {maps[tables[i]], &maps_0_1[tables[i]], visit_flow,
					  &connections};

		if (read_all(&reading, err))
			return -1;
	}
	return 0;
}

const struct older_layout layout_0_1 = {
	.layout = 1,
	.version = "0.1",
	.maps = maps_0_1,
	.map_count = OLD_MAP_COUNT,
	.shared = shared_0_1,
	.copy_records = copy_records,
	.copy_marks = copy_marks,
	.room = room,
	.walk_connections = walk_connections,
	.give_connections = give_connections_0_1,
};
