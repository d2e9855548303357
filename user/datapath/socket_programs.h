/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * socket_programs.h - the programs at the sockets of the host's processes: which there are.
 */
#ifndef DATAPATH_SOCKET_PROGRAMS_H
#define DATAPATH_SOCKET_PROGRAMS_H

#include <bpf/bpf.h>

/* What asks for them: a program is there once somebody needs it, and stays. */
enum socket_purpose {
	SOCKETS_REACH_PORTS, /* "localhost": the host's processes reach mapped ports */
	SOCKETS_LEAVE_PORTS, /* "reserveHostPorts": they cannot bind to them */
	SOCKET_PURPOSES,
};

enum socket_program {
	SOCKET_CONNECT4,
	SOCKET_CONNECT6,
	SOCKET_SENDMSG4,
	SOCKET_SENDMSG6,
	SOCKET_RECVMSG4,
	SOCKET_RECVMSG6,
	SOCKET_GETPEERNAME4,
	SOCKET_GETPEERNAME6,
	SOCKET_RELEASE,
	SOCKET_BIND4,
	SOCKET_BIND6,
	SOCKET_PROGRAM_COUNT,
};

/* File descriptors, -1 for those that were not asked for. */
struct socket_programs {
	int fds[SOCKET_PROGRAM_COUNT];
};

const char *socket_program_name(enum socket_program program);
enum socket_purpose socket_program_purpose(enum socket_program program);
enum bpf_attach_type socket_program_hook(enum socket_program program);

void socket_programs_close(struct socket_programs *programs);

#endif
