/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * socket_programs.h - the programs at the sockets of the host's processes: which there are.
 */
#ifndef DATAPATH_LOAD_SOCKET_PROGRAMS_H
#define DATAPATH_LOAD_SOCKET_PROGRAMS_H

#include <bpf/bpf.h>

/* What asks for them: a program is there once somebody needs it, and stays. */
enum socket_purpose {
	SOCKETS_REACH_PORTS, /* "localhost": the host's processes reach mapped ports */
	SOCKETS_LEAVE_PORTS, /* "reserveHostPorts": they cannot bind to them */
	SOCKET_PURPOSES,
};

/* In the order in which they are attached: where a run is killed on the way, no socket is given
 * what the programs that are there would not tell of rightly. */
enum socket_program {
	SOCKET_RECVMSG4,
	SOCKET_RECVMSG6,
	SOCKET_GETPEERNAME4,
	SOCKET_GETPEERNAME6,
	SOCKET_RELEASE,
	SOCKET_SENDMSG4,
	SOCKET_SENDMSG6,
	SOCKET_CONNECT4,
	SOCKET_CONNECT6,
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
