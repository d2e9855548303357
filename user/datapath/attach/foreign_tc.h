/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * foreign_tc.h - other people's tc and TCX programs, filters and qdiscs beside ours.
 */
#ifndef DATAPATH_ATTACH_FOREIGN_TC_H
#define DATAPATH_ATTACH_FOREIGN_TC_H

#include "datapath/load/datapath.h"
#include "datapath/attach/hooks.h"
#include "net/link.h"

#define FOREIGN_TC_SIZE 96

/* Returns whether a program or filter of others runs before ours at the hook. One that answers
 * TC_ACT_OK, or anything but "go on", ends the chain: ours never sees the packet, and a mapped port
 * is dead. From outside nobody can tell which answer a program gives, and most (those that count or
 * trace) let packets go on. The text names it ("the TCX program count (id 12)"). `without_filters`:
 * there is no qdisc to hold any but ours. */
bool foreign_tc_ahead(uint32_t ifindex, enum hook hook, bool without_filters,
		      char text[FOREIGN_TC_SIZE]);

/* The fast path takes a packet from our program at the hook where it enters to the one where it
 * leaves: what hangs behind the first, or anywhere at the host's end of a container's veth or at
 * its bridge, does not see it. */

/* Returns whether a program or filter hangs behind ours at the interface's ingress. */
bool foreign_tc_behind(uint32_t ifindex);

/* What packets must not skip. Begins as {0}. */
struct foreign_tc {
	bool program;  /* a program that our programs cannot see */
	bool watched;  /* what they see by themselves where sees_devices is set */
	char what[96]; /* for messages: the first one */
};

/* Adds what is not ours at an interface. `without_filters`: there was no qdisc to hold any a moment
 * ago. */
void foreign_tc_look(const struct datapath *datapath, const struct link *link, bool without_filters,
		     struct foreign_tc *found);

/* Returns whether the programs see qdiscs and filters by themselves (struct meta). */
bool foreign_tc_is_seen_by_programs(const struct datapath *datapath);

#endif
