/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tc.h - an interface's qdisc for hooks (clsact or ingress, which exclude each other), and the
 * filters on it.
 */
#ifndef NET_TC_H
#define NET_TC_H

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
/* Deletes it with all filters on it: only for the caller that has just made it. */
int qdisc_delete_clsact(uint32_t ifindex);
/* Returns whether it is clsact, without any filter. */
bool qdisc_is_empty_clsact(uint32_t ifindex);

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

/* BPF programs as direct-action filters. */
struct filter_place {
	uint32_t ifindex;
	bool egress;
	uint16_t priority;
	uint32_t handle;
};

/* Returns the id of the program there, or 0. */
uint32_t filter_program(const struct filter_place *place);
/* Adds it. Where a filter is there already, EEXIST unless it is to be replaced. ENOENT: the kernel
 * does not say afterwards that a program is there. 0, or -1 and errno. */
int filter_add(const struct filter_place *place, int program_fd, const char *name, bool replace);
int filter_delete(const struct filter_place *place);

#endif
