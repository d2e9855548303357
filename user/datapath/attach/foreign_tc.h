/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * foreign_tc.h - other people's tc and TCX programs, filters and qdiscs beside ours.
 */
#ifndef DATAPATH_ATTACH_FOREIGN_TC_H
#define DATAPATH_ATTACH_FOREIGN_TC_H

#include "datapath/load/datapath.h"
#include "datapath/attach/tcx.h"
#include "net/link.h"

struct nl_sock;

#define FOREIGN_TC_SIZE 96

/* Returns whether a program or filter of others runs before ours at the hook. One that answers
 * TC_ACT_OK, or anything but "go on", ends the chain: ours never sees the packet, and a mapped port
 * is dead. From outside nobody can tell which answer a program gives, and most (those that count or
 * trace) let packets go on. The text names it ("the TCX program count (id 12)"). `without_filters`:
 * there is no qdisc to hold any but ours. */
bool foreign_tc_ahead(struct nl_sock *socket, uint32_t ifindex, enum hook hook,
		      bool without_filters, char text[FOREIGN_TC_SIZE]);

/* The fast path takes a packet from our program at the hook where it enters to the one where it
 * leaves: what hangs behind the first, or anywhere at the host's end of a container's veth or at
 * its bridge, does not see it. */

/* Returns whether a program or filter hangs behind ours at the interface's ingress. */
bool foreign_tc_behind(struct nl_sock *socket, uint32_t ifindex);

/* What is not ours at an interface, as phrases; NULL: nothing. */
struct foreign_tc {
	const char *program; /* what only user space finds */
	const char *watched; /* what the programs see by themselves where sees_devices is set */
};

/* `without_filters`: there was no qdisc to hold any a moment ago. */
struct foreign_tc foreign_tc_at(const struct datapath *datapath, struct nl_sock *socket,
				const struct link *link, bool without_filters);

/* Returns whether the programs see qdiscs and filters by themselves (struct meta). */
bool foreign_tc_is_seen_by_programs(const struct datapath *datapath);

#endif
