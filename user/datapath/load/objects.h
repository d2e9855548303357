/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * objects.h - the maps and programs of one host: which there are, and checking that
 * a file descriptor is one of them.
 */
#pragma once

#include <linux/types.h>
#include <bpf/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"

/* meta comes last, in this list as in everything done by it: where meta is pinned, the others are.
 */
enum map_number {
	MAP_PORTMAPS,
	MAP_NAT_PORTS,
	MAP_PUBLISHED_PORTS,
	MAP_SLOTS,
	MAP_VETHS,
	MAP_ENDPOINTS,
	MAP_ENDPOINT_ADDRESSES,
	MAP_CONTAINERS,
	MAP_INTERFACES,
	MAP_HOST_ADDRESSES,
	MAP_NETWORKS,
	MAP_POLICIES,
	MAP_CONNECTIONS,
	MAP_ALIASES,
	MAP_HALF_OPEN,
	MAP_ASSURED,
	MAP_SHARES,
	MAP_USAGE,
	MAP_CLIENT_SHARES,
	MAP_PORT_SHARES,
	MAP_SOCKET_FLOWS,
	MAP_FRAGMENTS,
	MAP_HELD,
	MAP_ATTACHMENTS,
	MAP_EXTERNAL_PORTS,
	MAP_NOTICED,
	MAP_COUNTERS,
	MAP_META,
	MAP_COUNT,
};

enum program_number {
	PROGRAM_FROM_UPLINK,
	PROGRAM_TO_UPLINK,
	PROGRAM_FROM_UPLINK_RAW,
	PROGRAM_TO_UPLINK_RAW,
	PROGRAM_FROM_BRIDGE,
	PROGRAM_TO_CONTAINER,
	PROGRAM_FROM_CONTAINER,
	PROGRAM_FROM_LOOPBACK,
	PROGRAM_COUNT,
};

#define OBJECT_COUNT (MAP_COUNT + PROGRAM_COUNT)

/* File descriptors, -1 where there is none. Begins with objects_clear(). */
struct objects {
	int maps[MAP_COUNT];
	uint32_t map_ids[MAP_COUNT]; /* of maps that map_fd() opens; 0: not known */
	int programs[PROGRAM_COUNT];
	uint32_t program_ids[PROGRAM_COUNT];
};

const char *map_name(enum map_number map);
size_t map_key_size(enum map_number map);
size_t map_value_size(enum map_number map);
const char *program_name(enum program_number program);

void objects_clear(struct objects *objects);
void objects_close(struct objects *objects);

/* Returns the map's file descriptor, and opens the map first where only its id is known; -1: there
 * is none. A command needs few of the maps: to open them all would make an ADD longer by 6 %, and a
 * DEL by 10 %. */
int map_fd(const struct objects *objects, enum map_number map);

/* Returns whether the file descriptor is this map, with the key, value and type of our layout. */
bool map_has_our_shape(enum map_number map, int fd);
/* Returns whether both file descriptors are the same map. */
bool map_is_same(int one, int other);
/* Returns the program's kernel id, or 0 if it is another program or none. */
uint32_t program_id_of(enum program_number program, int fd);
/* Opens a program of which the id may be all that is known. -1, and errno, where it is gone. */
int program_open(const struct objects *objects, enum program_number program);
/* Reads the ids of all programs and maps, for meta. */
void objects_read_ids(const struct objects *objects, uint32_t ids[META_OBJECTS]);
/* Returns which program of ours has this id; PROGRAM_COUNT: none, or it is gone. */
enum program_number program_by_id(uint32_t id);

/* What every layout begins with; LAYOUT may differ, this may not. */
struct meta_head {
	uint32_t layout;
	uint32_t complete;
	uint64_t netns_cookie;
	uint64_t lo_inode;
	uint32_t generation;
	uint32_t next_slot;
	char program_version[PROGRAM_VERSION_SIZE];
	uint32_t conntrack;
	uint32_t sees_devices;
};

/* Reads it from a map of any layout. *has_our_shape, which may be NULL: the map is of our layout.
 * 0, or -1 and errno. */
int meta_head_read(int fd, struct meta_head *head, bool *has_our_shape);

/* Opens every map that the program uses or is bound to, by name. What has not our shape is left
 * out. 0, or -1 and errno. */
int objects_open_maps_of(int program_fd, int maps[MAP_COUNT]);

/* Does the same if they are whole, of our layout and of this host. Returns false where they are
 * not, and nothing is open. */
bool objects_open_whole(int program_fd, uint64_t netns_cookie, int maps[MAP_COUNT]);

/* Returns whether the maps that the program uses are those of `objects`, with meta among them. */
bool program_uses_maps(uint32_t id, const struct objects *objects);

/* What asks for programs at the sockets of the host's processes: one is there once somebody needs
 * it, and stays. */
enum socket_purpose {
	SOCKETS_REACH_PORTS, /* "localhost": the host's processes reach mapped ports */
	SOCKETS_LEAVE_PORTS, /* "reserveHostPorts": they cannot bind to them */
	SOCKET_PURPOSES,
};

/* In the order in which they are attached: those that tell a process what it asked for come before
 * those that change it, so that a command that is killed on the way does no harm. */
enum socket_program {
	/* SOCKETS_REACH_PORTS */
	SOCKET_RECVMSG4,
	SOCKET_RECVMSG6,
	SOCKET_GETPEERNAME4,
	SOCKET_GETPEERNAME6,
	SOCKET_SENDMSG4,
	SOCKET_SENDMSG6,
	SOCKET_CONNECT4,
	SOCKET_CONNECT6,
	/* SOCKETS_LEAVE_PORTS */
	SOCKET_BIND4,
	SOCKET_BIND6,
	SOCKET_PROGRAM_COUNT,
};

#define SOCKET_PROGRAMS_BEGIN(purpose) \
	((purpose) == SOCKETS_REACH_PORTS ? SOCKET_RECVMSG4 : SOCKET_BIND4)
#define SOCKET_PROGRAMS_END(purpose) \
	((purpose) == SOCKETS_REACH_PORTS ? SOCKET_BIND4 : SOCKET_PROGRAM_COUNT)
#define for_each_socket_program(program, purpose) \
	for (enum socket_program program = SOCKET_PROGRAMS_BEGIN(purpose); \
	     program < SOCKET_PROGRAMS_END(purpose); program++)

const char *socket_program_name(enum socket_program program);
enum bpf_attach_type socket_program_hook(enum socket_program program);

/* Closes those that are not -1, and makes all -1. */
void socket_programs_close(int fds[SOCKET_PROGRAM_COUNT]);
