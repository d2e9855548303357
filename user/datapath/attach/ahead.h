/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ahead.h - other people's tc and TCX programs that run before ours at an interface.
 *
 * One that answers TC_ACT_OK, or anything but "go on", ends the chain: ours never sees the packet,
 * and a mapped port is dead. From outside nobody can tell which answer a program gives, and most
 * (those that count or trace) let packets go on.
 */
#ifndef DATAPATH_ATTACH_AHEAD_H
#define DATAPATH_ATTACH_AHEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "datapath/attach/tcx.h"

struct nl_sock;

#define AHEAD_SIZE 96

/* True: there is one before ours at the hook; text names it ("the TCX program count (id 12)").
 * `without_filters`: there is no qdisc to hold any but ours. */
bool ahead_find(struct nl_sock *socket, uint32_t ifindex, enum hook hook, bool without_filters,
		char text[AHEAD_SIZE]);

#endif
