/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bypass.h - what the fast path would walk past.
 *
 * It takes a packet from our program at the hook where it enters to the one where it leaves: what
 * hangs behind the first, or anywhere at the host's end of a container's veth or at its bridge,
 * does not see it.
 */
#ifndef DATAPATH_ATTACH_BYPASS_H
#define DATAPATH_ATTACH_BYPASS_H

#include "datapath/load/datapath.h"
#include "net/link.h"

struct nl_sock;

/* Whether somebody else's program hangs behind ours at the interface's ingress. */
bool bypass_at_ingress(const struct datapath *datapath, struct nl_sock *socket, uint32_t ifindex);

/* What is not ours at an interface, as phrases; NULL: nothing. */
struct bypass {
	const char *program; /* what only user space finds */
	const char *watched; /* what the programs see by themselves where sees_devices is set */
};

/* `without_filters`: there was no qdisc to hold any a moment ago. */
struct bypass bypass_at_link(const struct datapath *datapath, struct nl_sock *socket,
			     const struct link *link, bool without_filters);

/* Whether the programs see qdiscs and filters by themselves (struct meta). */
bool bypass_is_seen_by_programs(const struct datapath *datapath);

#endif
