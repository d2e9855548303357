/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tc.h - an interface's qdisc for hooks (clsact or ingress, which exclude each other), and the
 * filters on it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ingress_qdisc {
	INGRESS_QDISC_NONE,
	INGRESS_QDISC_CLSACT,
	INGRESS_QDISC_INGRESS, /* hooks at ingress only; the bandwidth plugin makes one */
	INGRESS_QDISC_OTHER,
};

/* Returns which one it has; an interface that is gone has none. */
enum ingress_qdisc qdisc_at_ingress(uint32_t ifindex);

struct interface_qdisc {
	uint32_t ifindex;
	enum ingress_qdisc qdisc;
};

/* Begins as {0}; `list` is malloc'ed. */
struct qdisc_list {
	struct interface_qdisc *list;
	size_t count;
};

/* Lists those of all interfaces that have one, by one question. Returns false where the kernel does
 * not say all. */
bool qdiscs_at_ingress(struct qdisc_list *qdiscs);

/* Adds it. 0, or -1 and errno; EEXIST: a qdisc is there, this or `ingress`. */
int qdisc_add_clsact(uint32_t ifindex);
/* Deletes it where no filter is on it. */
void qdisc_delete_empty_clsact(uint32_t ifindex);

/* Filters run in the order of their priorities. A handle of 0 is the kernel's announcement of all
 * of one priority. */
struct filter {
	uint32_t priority;
	uint32_t handle;
	uint32_t program;  /* of a BPF filter: the program's id; else 0 */
	uint32_t redirect; /* of a u32 filter: the interface that its action mirred sends packets
			    * to, as the bandwidth plugin's does; else 0 */
	char kind[16];
};

/* Begins as {0}; `list` is malloc'ed. */
struct filter_list {
	struct filter *list;
	size_t count;
};

/* Adds the filters at ingress, or at egress, in the order in which they run. Where only an
 * `ingress` qdisc is, both mean ingress. Returns false where the kernel does not say all. */
bool filters_read(uint32_t ifindex, bool ingress, struct filter_list *filters);

/* Our programs as direct-action filters, at ingress or at egress: all with the same priority and
 * handle, so that a second attach meets the first. Early, but after priority 1, which other plugins
 * rely on. */
#define FILTER_PRIORITY 2
#define FILTER_HANDLE 0x706d

/* Returns the id of the program there, or 0. */
uint32_t filter_program(uint32_t ifindex, bool ingress);
/* Adds it. Where a filter is there already, EEXIST unless it is to be replaced. ENOENT: the kernel
 * does not say afterwards that a program is there. 0, or -1 and errno. */
int filter_add(uint32_t ifindex, bool ingress, int program_fd, const char *name, bool replace);
int filter_delete(uint32_t ifindex, bool ingress);
