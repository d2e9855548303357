/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* objects.c - the maps and programs of one host. */
#include "datapath/load/objects.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cleanup.h"
#include "lib/memory.h"

struct map_shape {
	const char *name;
	enum bpf_map_type type;
	uint32_t key_size;
	uint32_t value_size;
};

#define SHAPE(name, type, key, value) \
	{ \
		name, BPF_MAP_TYPE_##type, sizeof(key), sizeof(value) \
	}

static const struct map_shape shapes[MAP_COUNT] = {
	[MAP_PORTMAPS] = SHAPE("portmaps", HASH, struct portmap_key, struct portmap_succession),
	[MAP_NAT_PORTS] = SHAPE("nat_ports", HASH, struct portmap_key, struct nat_port),
	[MAP_PUBLISHED_PORTS] = SHAPE("published_ports", ARRAY, __u32, __u64),
	[MAP_SLOTS] = SHAPE("slots", ARRAY, __u32, struct slot),
	[MAP_VETHS] = SHAPE("veths", DEVMAP_HASH, __u32, __u32),
	[MAP_ENDPOINTS] = SHAPE("endpoints", HASH, struct endpoint_key, struct endpoint),
	[MAP_ENDPOINT_ADDRESSES] = SHAPE("endpoint_addresses", ARRAY, __u32, __u64),
	[MAP_CONTAINERS] = SHAPE("containers", HASH, __u64, struct container_homes),
	[MAP_INTERFACES] = SHAPE("interfaces", HASH, __u32, struct interface),
	[MAP_HOST_ADDRESSES] =
		SHAPE("host_addresses", HASH, struct host_address_key, struct host_address),
	[MAP_NETWORKS] = SHAPE("networks", HASH, struct network_key, struct network),
	[MAP_POLICIES] = SHAPE("policies", HASH, __u32, struct policy),
	[MAP_CONNECTIONS] = SHAPE("connections", HASH, struct connection_key, struct connection),
	[MAP_ALIASES] = SHAPE("aliases", HASH, struct connection_key, struct alias),
	[MAP_HALF_OPEN] = SHAPE("half_open", ARRAY, __u32, struct half_open),
	[MAP_ASSURED] = SHAPE("assured", ARRAY, __u32, struct assured),
	[MAP_SHARES] = SHAPE("shares", ARRAY, __u32, struct share),
	[MAP_USAGE] = SHAPE("usage", ARRAY, __u32, struct usage),
	[MAP_CLIENT_SHARES] = SHAPE("client_shares", ARRAY, __u32, __u32),
	[MAP_PORT_SHARES] = SHAPE("port_shares", ARRAY, __u32, struct port_share),
	[MAP_SOCKET_FLOWS] = SHAPE("socket_flows", SK_STORAGE, __u32, struct socket_flows),
	[MAP_FRAGMENTS] = SHAPE("fragments", ARRAY, __u32, struct fragment_row),
	[MAP_HELD] = SHAPE("held", ARRAY, __u32, struct held_fragment),
	[MAP_ATTACHMENTS] = SHAPE("attachments", HASH, struct attachment_key, struct attachment),
	[MAP_EXTERNAL_PORTS] = SHAPE("external_ports", ARRAY, __u32, struct external_port),
	[MAP_NOTICED] = SHAPE("noticed", ARRAY, __u32, struct noticed),
	[MAP_COUNTERS] = SHAPE("counters", PERCPU_ARRAY, __u32, struct counters),
	[MAP_META] = SHAPE("meta", ARRAY, __u32, struct meta),
};

static const char *const program_names[PROGRAM_COUNT] = {
	[PROGRAM_FROM_UPLINK] = "from_uplink",         [PROGRAM_TO_UPLINK] = "to_uplink",
	[PROGRAM_FROM_UPLINK_RAW] = "from_uplink_raw", [PROGRAM_TO_UPLINK_RAW] = "to_uplink_raw",
	[PROGRAM_FROM_BRIDGE] = "from_bridge",         [PROGRAM_TO_CONTAINER] = "to_container",
	[PROGRAM_FROM_CONTAINER] = "from_container",   [PROGRAM_FROM_LOOPBACK] = "from_loopback",
};

_Static_assert(sizeof(struct meta_head) == offsetof(struct meta, masquerade_ports),
	       "the head is all that comes before the port ranges");

const char *map_name(enum map_number map)
{
	return shapes[map].name;
}

size_t map_key_size(enum map_number map)
{
	return shapes[map].key_size;
}

size_t map_value_size(enum map_number map)
{
	return shapes[map].value_size;
}

const char *program_name(enum program_number program)
{
	return program_names[program];
}

void objects_clear(struct objects *objects)
{
	for (int i = 0; i < MAP_COUNT; i++) {
		objects->maps[i] = -1;
		objects->map_ids[i] = 0;
	}
	for (int i = 0; i < PROGRAM_COUNT; i++) {
		objects->programs[i] = -1;
		objects->program_ids[i] = 0;
	}
}

void objects_close(struct objects *objects)
{
	for (int i = 0; i < MAP_COUNT; i++)
		cleanup_close_pointer(&objects->maps[i]);
	for (int i = 0; i < PROGRAM_COUNT; i++)
		cleanup_close_pointer(&objects->programs[i]);
	objects_clear(objects);
}

int map_fd(const struct objects *objects, enum map_number map)
{
	/* What is opened is the same as before for whoever asks. */
	int *fd = &((struct objects *)objects)->maps[map];

	if (*fd < 0 && objects->map_ids[map])
		*fd = bpf_map_get_fd_by_id(objects->map_ids[map]);
	return *fd;
}

static bool read_map_info(int fd, struct bpf_map_info *info)
{
	uint32_t size = sizeof(*info);

	memset(info, 0, sizeof(*info));
	return !bpf_obj_get_info_by_fd(fd, info, &size);
}

/* The kernel keeps 15 bytes of a map's name. */
static bool has_shape(const struct map_shape *shape, const struct bpf_map_info *info)
{
	return info->type == shape->type && info->key_size == shape->key_size &&
	       info->value_size == shape->value_size &&
	       strncmp(info->name, shape->name, BPF_OBJ_NAME_LEN - 1) == 0;
}

bool map_has_our_shape(enum map_number map, int fd)
{
	struct bpf_map_info info;

	return read_map_info(fd, &info) && has_shape(&shapes[map], &info);
}

bool map_is_same(int one, int other)
{
	struct bpf_map_info info, other_info;

	return read_map_info(one, &info) && read_map_info(other, &other_info) &&
	       info.id == other_info.id;
}

void objects_read_ids(const struct objects *objects, uint32_t ids[META_OBJECTS])
{
	struct bpf_map_info info;

	memset(ids, 0, META_OBJECTS * sizeof(*ids));
	memcpy(ids, objects->program_ids, sizeof(objects->program_ids));
	for (int map = 0; map < MAP_COUNT; map++)
		if (read_map_info(objects->maps[map], &info))
			ids[PROGRAM_COUNT + map] = info.id;
}

static bool read_program_info(int fd, struct bpf_prog_info *info)
{
	uint32_t size = sizeof(*info);

	memset(info, 0, sizeof(*info));
	return !bpf_obj_get_info_by_fd(fd, info, &size);
}

uint32_t program_id_of(enum program_number program, int fd)
{
	struct bpf_prog_info info;

	if (!read_program_info(fd, &info) || info.type != BPF_PROG_TYPE_SCHED_CLS ||
	    strcmp(info.name, program_names[program]) != 0)
		return 0;
	return info.id;
}

int program_open(const struct objects *objects, enum program_number program)
{
	return bpf_prog_get_fd_by_id(objects->program_ids[program]);
}

enum program_number program_by_id(uint32_t id)
{
	cleanup_close int fd = bpf_prog_get_fd_by_id(id);
	struct bpf_prog_info info;
	int program;

	if (fd < 0 || !read_program_info(fd, &info) || info.type != BPF_PROG_TYPE_SCHED_CLS)
		return PROGRAM_COUNT;
	for (program = 0; program < PROGRAM_COUNT; program++)
		if (strcmp(info.name, program_names[program]) == 0)
			break;
	return (enum program_number)program;
}

int meta_head_read(int fd, struct meta_head *head, bool *has_our_shape)
{
	struct bpf_map_info info;
	cleanup_free void *value = NULL;
	uint32_t only = 0;

	if (!read_map_info(fd, &info))
		return -1;
	if (info.type != BPF_MAP_TYPE_ARRAY || info.key_size != sizeof(only) ||
	    info.value_size < sizeof(*head)) {
		errno = EINVAL;
		return -1;
	}
	if (has_our_shape)
		*has_our_shape = has_shape(&shapes[MAP_META], &info);
	value = or_exit(malloc(info.value_size));
	if (bpf_map_lookup_elem(fd, &only, value))
		return -1;
	memcpy(head, value, sizeof(*head));
	head->program_version[PROGRAM_VERSION_SIZE - 1] = '\0';
	return 0;
}

int objects_open_maps_of(int program_fd, int maps[MAP_COUNT])
{
	uint32_t ids[4 * MAP_COUNT];
	struct bpf_prog_info info = {
		.nr_map_ids = sizeof(ids) / sizeof(*ids),
		.map_ids = (uint64_t)(uintptr_t)ids,
	};
	uint32_t size = sizeof(info);

	if (bpf_obj_get_info_by_fd(program_fd, &info, &size))
		return -1;
	for (uint32_t i = 0; i < info.nr_map_ids && i < sizeof(ids) / sizeof(*ids); i++) {
		cleanup_close int fd = bpf_map_get_fd_by_id(ids[i]);
		struct bpf_map_info map_info;

		if (fd < 0 || !read_map_info(fd, &map_info))
			continue;
		for (int map = 0; fd >= 0 && map < MAP_COUNT; map++)
			if (maps[map] < 0 && has_shape(&shapes[map], &map_info)) {
				maps[map] = fd;
				fd = -1;
			}
	}
	return 0;
}

bool objects_open_whole(int program_fd, uint64_t netns_cookie, int maps[MAP_COUNT])
{
	struct meta_head head;
	struct objects used;
	bool ours;

	objects_clear(&used);
	ours = !objects_open_maps_of(program_fd, used.maps);
	for (int map = 0; map < MAP_COUNT; map++)
		ours = ours && used.maps[map] >= 0;
	ours = ours && !meta_head_read(used.maps[MAP_META], &head, NULL) && head.layout == LAYOUT &&
	       head.netns_cookie == netns_cookie;
	if (ours) {
		memcpy(maps, used.maps, sizeof(used.maps));
		objects_clear(&used);
	}
	objects_close(&used);
	return ours;
}

bool program_uses_maps(uint32_t id, const struct objects *objects)
{
	cleanup_close int program = bpf_prog_get_fd_by_id(id);
	struct objects used;
	bool same;

	objects_clear(&used);
	same = program >= 0 && !objects_open_maps_of(program, used.maps) &&
	       used.maps[MAP_META] >= 0;
	for (int map = 0; same && map < MAP_COUNT; map++)
		same = used.maps[map] < 0 || map_is_same(used.maps[map], map_fd(objects, map));
	objects_close(&used);
	return same;
}

/* The programs at the sockets of the host's processes. */
static const struct {
	const char *name;
	enum bpf_attach_type hook;
} socket_programs[SOCKET_PROGRAM_COUNT] = {
	[SOCKET_CONNECT4] = {"connect4", BPF_CGROUP_INET4_CONNECT},
	[SOCKET_CONNECT6] = {"connect6", BPF_CGROUP_INET6_CONNECT},
	[SOCKET_SENDMSG4] = {"sendmsg4", BPF_CGROUP_UDP4_SENDMSG},
	[SOCKET_SENDMSG6] = {"sendmsg6", BPF_CGROUP_UDP6_SENDMSG},
	[SOCKET_RECVMSG4] = {"recvmsg4", BPF_CGROUP_UDP4_RECVMSG},
	[SOCKET_RECVMSG6] = {"recvmsg6", BPF_CGROUP_UDP6_RECVMSG},
	[SOCKET_GETPEERNAME4] = {"getpeername4", BPF_CGROUP_INET4_GETPEERNAME},
	[SOCKET_GETPEERNAME6] = {"getpeername6", BPF_CGROUP_INET6_GETPEERNAME},
	[SOCKET_BIND4] = {"bind4", BPF_CGROUP_INET4_BIND},
	[SOCKET_BIND6] = {"bind6", BPF_CGROUP_INET6_BIND},
};

const char *socket_program_name(enum socket_program program)
{
	return socket_programs[program].name;
}

enum bpf_attach_type socket_program_hook(enum socket_program program)
{
	return socket_programs[program].hook;
}

void socket_programs_close(int fds[SOCKET_PROGRAM_COUNT])
{
	for (int program = 0; program < SOCKET_PROGRAM_COUNT; program++)
		cleanup_close_pointer(&fds[program]);
}
