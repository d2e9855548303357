/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * socket_programs.h - the programs at the sockets of the host's processes: which there are.
 */
#ifndef DATAPATH_SOCKET_PROGRAMS_H
#define DATAPATH_SOCKET_PROGRAMS_H

#include <bpf/bpf.h>

enum socket_program {
	SOCKET_CONNECT4,
	SOCKET_CONNECT6,
	SOCKET_SENDMSG4,
	SOCKET_SENDMSG6,
	SOCKET_RECVMSG4,
	SOCKET_RECVMSG6,
	SOCKET_GETPEERNAME4,
	SOCKET_GETPEERNAME6,
	SOCKET_PROGRAM_COUNT,
};

/* File descriptors. */
struct socket_programs {
	int fds[SOCKET_PROGRAM_COUNT];
};

const char *socket_program_name(enum socket_program program);
enum bpf_attach_type socket_program_hook(enum socket_program program);

void socket_programs_close(struct socket_programs *programs);

#endif
