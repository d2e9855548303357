/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * queue.h - what the queues (qdiscs) have done that packets leave interfaces by.
 */
#pragma once

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
