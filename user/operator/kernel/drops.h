/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * drops.h - how many packets interfaces, and the queues (qdiscs) that packets leave them by, have
 * dropped; and the kernel's names for why and where.
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

#define FUNCTION_NAME_SIZE 96

/* An address in the kernel's code, by the function that it is in. */
struct kernel_function {
	uint64_t address;
	char name[FUNCTION_NAME_SIZE]; /* "nf_hook_slow+0xa3"; "": not known */
};

struct btf;

/* Read when they are first asked for. Begins as {0}. */
struct kernel_names {
	struct btf *btf;
	struct kernel_function *functions;
	size_t function_count;
};

/* Reads ahead what takes long. */
void kernel_names_prepare(struct kernel_names *names);
void kernel_names_release(struct kernel_names *names);

/* Returns "NETFILTER_DROP"; NULL: the kernel does not say. */
const char *kernel_reason(struct kernel_names *names, uint32_t reason);
/* Returns "nf_hook_slow+0xa3", or "" where that is not known. */
const char *kernel_function(struct kernel_names *names, uint64_t address);
