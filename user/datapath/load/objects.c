/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* objects.c - the maps and programs of one host. */
#include "datapath/load/objects.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/cleanup.h"

struct map_shape {
	const char *name;
	enum bpf_map_type type;
	uint32_t key_size;
	uint32_t value_size;
};

static const struct map_shape shapes[MAP_COUNT] = {
	[MAP_PORTMAPS] = {"portmaps", BPF_MAP_TYPE_HASH, sizeof(struct portmap_key),
			  sizeof(struct portmap)},
	[MAP_PUBLISHED_PORTS] = {"published_ports", BPF_MAP_TYPE_ARRAY, sizeof(__u32),
				 sizeof(__u64)},
	[MAP_SLOTS] = {"slots", BPF_MAP_TYPE_ARRAY, sizeof(__u32), sizeof(struct slot)},
	[MAP_VETHS] = {"veths", BPF_MAP_TYPE_DEVMAP_HASH, sizeof(__u32), sizeof(__u32)},
	[MAP_ENDPOINTS] = {"endpoints", BPF_MAP_TYPE_HASH, sizeof(struct endpoint_key),
			   sizeof(struct endpoint)},
	[MAP_ENDPOINT_ADDRESSES] = {"endpoint_addresses", BPF_MAP_TYPE_ARRAY, sizeof(__u32),
				    sizeof(__u64)},
	[MAP_INTERFACES] = {"interfaces", BPF_MAP_TYPE_HASH, sizeof(__u32),
			    sizeof(struct interface)},
	[MAP_HOST_ADDRESSES] = {"host_addresses", BPF_MAP_TYPE_HASH,
				sizeof(struct host_address_key), sizeof(struct host_address)},
	[MAP_NETWORKS] = {"networks", BPF_MAP_TYPE_HASH, sizeof(struct network_key),
			  sizeof(struct network)},
	[MAP_POLICIES] = {"policies", BPF_MAP_TYPE_HASH, sizeof(__u32), sizeof(struct policy)},
	[MAP_CONNECTIONS] = {"connections", BPF_MAP_TYPE_HASH, sizeof(struct connection_key),
			     sizeof(struct connection)},
	[MAP_ALIASES] = {"aliases", BPF_MAP_TYPE_HASH, sizeof(struct connection_key),
			 sizeof(struct alias)},
	[MAP_HALF_OPEN] = {"half_open", BPF_MAP_TYPE_ARRAY, sizeof(__u32),
			   sizeof(struct half_open)},
	[MAP_ASSURED] = {"assured", BPF_MAP_TYPE_ARRAY, sizeof(__u32), sizeof(struct assured)},
	[MAP_SHARES] = {"shares", BPF_MAP_TYPE_ARRAY, sizeof(__u32), sizeof(struct share)},
	[MAP_USAGE] = {"usage", BPF_MAP_TYPE_ARRAY, sizeof(__u32), sizeof(struct usage)},
	[MAP_CLIENT_SHARES] = {"client_shares", BPF_MAP_TYPE_ARRAY, sizeof(__u32), sizeof(__u32)},
	[MAP_PORT_SHARES] = {"port_shares", BPF_MAP_TYPE_ARRAY, sizeof(__u32),
			     sizeof(struct port_share)},
	[MAP_SOCKET_FLOWS] = {"socket_flows", BPF_MAP_TYPE_LRU_HASH, sizeof(struct socket_flow_key),
			      sizeof(struct socket_flow)},
	[MAP_FRAGMENTS] = {"fragments", BPF_MAP_TYPE_LRU_HASH, sizeof(struct fragment_key),
			   sizeof(struct fragment)},
	[MAP_HELD] = {"held", BPF_MAP_TYPE_ARRAY, sizeof(__u32), sizeof(struct held_fragment)},
	[MAP_ATTACHMENTS] = {"attachments", BPF_MAP_TYPE_HASH, sizeof(struct attachment_key),
			     sizeof(struct attachment)},
	[MAP_WARNINGS] = {"warnings", BPF_MAP_TYPE_HASH, sizeof(__u32), sizeof(struct warnings)},
	[MAP_NOTICED] = {"noticed", BPF_MAP_TYPE_ARRAY, sizeof(__u32), sizeof(struct noticed)},
	[MAP_COUNTERS] = {"counters", BPF_MAP_TYPE_PERCPU_ARRAY, sizeof(__u32),
			  sizeof(struct counters)},
	[MAP_META] = {"meta", BPF_MAP_TYPE_ARRAY, sizeof(__u32), sizeof(struct meta)},
};

static const char *const program_names[PROGRAM_COUNT] = {
	[PROGRAM_FROM_UPLINK] = "from_uplink",         [PROGRAM_TO_UPLINK] = "to_uplink",
	[PROGRAM_FROM_UPLINK_RAW] = "from_uplink_raw", [PROGRAM_TO_UPLINK_RAW] = "to_uplink_raw",
	[PROGRAM_FROM_BRIDGE] = "from_bridge",         [PROGRAM_TO_CONTAINER] = "to_container",
	[PROGRAM_FROM_CONTAINER] = "from_container",
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
	objects->directory = NULL;
	for (int i = 0; i < MAP_COUNT; i++)
		objects->maps[i] = -1;
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

static bool map_is_same(int fd, int other_fd)
{
	struct bpf_map_info info, other;

	return read_map_info(fd, &info) && read_map_info(other_fd, &other) && info.id == other.id;
}

static bool read_program_info(int fd, struct bpf_prog_info *info)
{
	uint32_t size = sizeof(*info);

	memset(info, 0, sizeof(*info));
	return !bpf_obj_get_info_by_fd(fd, info, &size);
}

/* Ids of the programs that were opened, which no other program gets. To ask the kernel for the name
 * of each id again makes 27 system calls more, and an ADD 7 % longer. */
static uint32_t known_ids[PROGRAM_COUNT];

uint32_t program_id_of(enum program_number program, int fd)
{
	struct bpf_prog_info info;

	if (!read_program_info(fd, &info) || info.type != BPF_PROG_TYPE_SCHED_CLS ||
	    strcmp(info.name, program_names[program]) != 0)
		return 0;
	known_ids[program] = info.id;
	return info.id;
}

enum program_number program_by_id(uint32_t id)
{
	cleanup_close int fd = -1;
	struct bpf_prog_info info;
	int program;

	for (program = 0; program < PROGRAM_COUNT; program++)
		if (known_ids[program] == id)
			return (enum program_number)program;
	fd = bpf_prog_get_fd_by_id(id);
	if (fd < 0 || !read_program_info(fd, &info) || info.type != BPF_PROG_TYPE_SCHED_CLS)
		return PROGRAM_COUNT;
	for (program = 0; program < PROGRAM_COUNT; program++)
		if (strcmp(info.name, program_names[program]) == 0)
			break;
	return (enum program_number)program;
}

int meta_head_read(int fd, struct meta_head *head)
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
	value = malloc(info.value_size);
	if (!value || bpf_map_lookup_elem(fd, &only, value))
		return -1;
	memcpy(head, value, sizeof(*head));
	head->program_version[PROGRAM_VERSION_SIZE - 1] = '\0';
	return 0;
}

static void take_map(int fd, int maps[MAP_COUNT])
{
	struct bpf_map_info info;

	for (int map = 0; read_map_info(fd, &info) && map < MAP_COUNT; map++) {
		if (maps[map] >= 0 || !has_shape(&shapes[map], &info))
			continue;
		maps[map] = fd;
		return;
	}
	close(fd);
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
		int fd = bpf_map_get_fd_by_id(ids[i]);

		if (fd >= 0)
			take_map(fd, maps);
	}
	return 0;
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
		same = used.maps[map] < 0 || map_is_same(used.maps[map], objects->maps[map]);
	objects_close(&used);
	return same;
}
