/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * drops.h - how many packets interfaces, and the queues (qdiscs) that packets leave them by, have
 * dropped.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct netlink;

#define QUEUE_KIND_SIZE 16

/* At an interface's root. */
struct queue_use {
	uint32_t ifindex;
	char kind[QUEUE_KIND_SIZE]; /* "tbf" */
	uint32_t sent, dropped;     /* packets, since it was made */
};

/* Calls `visit` for that of each interface which has one. */
void queues_visit(struct netlink *socket, void (*visit)(void *context, const struct queue_use *use),
		  void *context);

/* By the interface itself, without a program or a queue; packets, since it was made. */
struct link_drops {
	uint32_t ifindex;
	uint64_t in, out;
	uint64_t for_others; /* for another MAC; since Linux 5.19 */
};

/* Begins as {0}. */
struct link_drops_list {
	struct link_drops *list;
	size_t count;
};

void link_drops_read(struct netlink *socket, struct link_drops_list *drops);
void link_drops_release(struct link_drops_list *drops);

/* Returns how many more there are than in the list before. */
struct link_drops link_drops_since(const struct link_drops *now,
				   const struct link_drops_list *before);
