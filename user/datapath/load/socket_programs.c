/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* socket_programs.c - the programs at the sockets of the host's processes: which there are. */
#include "datapath/load/socket_programs.h"

#include "lib/cleanup.h"

static const struct {
	const char *name;
	enum bpf_attach_type hook;
} programs[SOCKET_PROGRAM_COUNT] = {
	[SOCKET_CONNECT4] = {"connect4", BPF_CGROUP_INET4_CONNECT},
	[SOCKET_CONNECT6] = {"connect6", BPF_CGROUP_INET6_CONNECT},
	[SOCKET_SENDMSG4] = {"sendmsg4", BPF_CGROUP_UDP4_SENDMSG},
	[SOCKET_SENDMSG6] = {"sendmsg6", BPF_CGROUP_UDP6_SENDMSG},
	[SOCKET_RECVMSG4] = {"recvmsg4", BPF_CGROUP_UDP4_RECVMSG},
	[SOCKET_RECVMSG6] = {"recvmsg6", BPF_CGROUP_UDP6_RECVMSG},
	[SOCKET_GETPEERNAME4] = {"getpeername4", BPF_CGROUP_INET4_GETPEERNAME},
	[SOCKET_GETPEERNAME6] = {"getpeername6", BPF_CGROUP_INET6_GETPEERNAME},
	[SOCKET_RELEASE] = {"sock_release", BPF_CGROUP_INET_SOCK_RELEASE},
	[SOCKET_BIND4] = {"bind4", BPF_CGROUP_INET4_BIND},
	[SOCKET_BIND6] = {"bind6", BPF_CGROUP_INET6_BIND},
};

const char *socket_program_name(enum socket_program program)
{
	return programs[program].name;
}

enum bpf_attach_type socket_program_hook(enum socket_program program)
{
	return programs[program].hook;
}

void socket_programs_clear(struct socket_programs *opened)
{
	for (int program = 0; program < SOCKET_PROGRAM_COUNT; program++)
		opened->fds[program] = -1;
}

void socket_programs_close(struct socket_programs *opened)
{
	for (int program = 0; program < SOCKET_PROGRAM_COUNT; program++)
		cleanup_close_pointer(&opened->fds[program]);
	socket_programs_clear(opened);
}
