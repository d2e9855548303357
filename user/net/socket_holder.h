/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * socket_holder.h - which process has a socket.
 */
#ifndef NET_SOCKET_HOLDER_H
#define NET_SOCKET_HOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct socket_holder {
	pid_t pid;
	int fd;           /* its number there */
	char command[16]; /* as in /proc/PID/comm */
};

/* The first process that /proc shows with this socket open. False: none; it may be one of
 * another PID namespace, or gone. Reads the links of all open files of all processes. */
bool socket_holder_find(uint32_t inode, struct socket_holder *holder);

/* A second file descriptor of the socket for ourselves (pidfd_getfd: Linux 5.6), or -1 and
 * errno. Check that it still is the socket that was meant. */
int socket_holder_borrow(const struct socket_holder *holder);

#endif
