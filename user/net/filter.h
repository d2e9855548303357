/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * filter.h - BPF programs as direct-action filters of tc.
 */
#ifndef NET_FILTER_H
#define NET_FILTER_H

#include <stdbool.h>
#include <stdint.h>

struct nl_sock;

struct filter_place {
	uint32_t ifindex;
	bool egress;
	uint16_t priority;
	uint32_t handle;
};

/* The id of the program there, or 0. */
uint32_t filter_find(struct nl_sock *socket, const struct filter_place *place);

/* Where a filter is there already, EEXIST unless it is to be replaced. ENOENT: the kernel
 * does not say afterwards that a program is there. 0, or -1 and errno. */
int filter_add(struct nl_sock *socket, const struct filter_place *place, int program_fd,
	       const char *name, bool replace);
int filter_delete(struct nl_sock *socket, const struct filter_place *place);

#endif
