/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * link_names.h - names and indexes of interfaces, cheaper than whole links.
 */
#ifndef NET_LINK_NAMES_H
#define NET_LINK_NAMES_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/error.h"

struct nl_sock;

/* False: it is gone. */
bool link_name(struct nl_sock *socket, uint32_t ifindex, char name[IF_NAMESIZE]);
/* 0: there is none. */
uint32_t link_index(const char *name);

struct link_name {
	uint32_t ifindex;
	char name[IF_NAMESIZE];
};

/* One RTM_GETLINK: all interfaces; *names is malloc'ed. Code 5. */
int link_names_read(struct nl_sock *socket, struct link_name **names, size_t *count,
		    struct cni_error *err);

#endif
