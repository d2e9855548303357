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

/* In the order in which they are attached: those that tell a process what it asked for come before
 * those that change it, so that a command that is killed on the way does no harm. */
enum socket_program {
	/* SOCKETS_REACH_PORTS */
	SOCKET_RECVMSG4,
	SOCKET_RECVMSG6,
	SOCKET_GETPEERNAME4,
	SOCKET_GETPEERNAME6,
	SOCKET_RELEASE,
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

/* File descriptors of programs, or of their links; -1: none. Begins with socket_programs_clear().
 */
struct socket_programs {
	int fds[SOCKET_PROGRAM_COUNT];
};

const char *socket_program_name(enum socket_program program);
enum bpf_attach_type socket_program_hook(enum socket_program program);

void socket_programs_clear(struct socket_programs *programs);
void socket_programs_close(struct socket_programs *programs);

#endif
