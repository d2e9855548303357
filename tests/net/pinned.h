/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* pinned.h - for tools that read or write what the plugin has pinned, and its hooks at sockets. */
#pragma once

#include <bpf/bpf.h>
#include <fcntl.h>

#include "tool.h"

#define PIN_SIZE 512

static inline const char *pin_of(char path[PIN_SIZE], const char *directory, const char *name)
{
	snprintf(path, PIN_SIZE, "%s/%s", directory, name);
	return path;
}

/* A map, program or link. Ends the program if there is none. */
static inline int open_pin(const char *path)
{
	int fd = bpf_obj_get(path);

	if (fd < 0)
		die(path);
	return fd;
}

static inline int open_map(const char *directory, const char *name)
{
	char path[PIN_SIZE];

	return open_pin(pin_of(path, directory, name));
}

static inline void pin(int fd, const char *path)
{
	if (bpf_obj_pin(fd, path))
		die(path);
}

static inline void pin_in(int fd, const char *directory, const char *name)
{
	char path[PIN_SIZE];

	pin(fd, pin_of(path, directory, name));
}

static inline int open_cgroup(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		die(path);
	return fd;
}

/* Hooks at sockets, and what the programs there are named after, in the order of these names. As
 * bpftool names them, which reads the types of the whole kernel before it can say so. */
static const struct socket_hook {
	const char *name;
	enum bpf_attach_type hook;
	bool ours;
} socket_hooks[] = {
	{"bind4", BPF_CGROUP_INET4_BIND, false},
	{"bind6", BPF_CGROUP_INET6_BIND, false},
	{"connect4", BPF_CGROUP_INET4_CONNECT, true},
	{"connect6", BPF_CGROUP_INET6_CONNECT, true},
	{"getpeername4", BPF_CGROUP_INET4_GETPEERNAME, true},
	{"getpeername6", BPF_CGROUP_INET6_GETPEERNAME, true},
	{"recvmsg4", BPF_CGROUP_UDP4_RECVMSG, true},
	{"recvmsg6", BPF_CGROUP_UDP6_RECVMSG, true},
	{"sendmsg4", BPF_CGROUP_UDP4_SENDMSG, true},
	{"sendmsg6", BPF_CGROUP_UDP6_SENDMSG, true},
	{NULL},
};
