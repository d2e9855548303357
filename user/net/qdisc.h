/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * qdisc.h - what sits at an interface's ingress, where clsact and ingress exclude
 * each other.
 */
#ifndef NET_QDISC_H
#define NET_QDISC_H

#include <stdbool.h>
#include <stdint.h>

struct nl_sock;

enum ingress_qdisc {
	INGRESS_QDISC_NONE,
	INGRESS_QDISC_CLSACT,
	INGRESS_QDISC_INGRESS, /* hooks at ingress only; the bandwidth plugin makes one */
	INGRESS_QDISC_OTHER,
};

/* An interface that is gone has none. */
enum ingress_qdisc qdisc_at_ingress(struct nl_sock *socket, uint32_t ifindex);

/* One filter at ingress or egress: they run in the order of their priorities. A handle of 0 is the
 * kernel's announcement of all of one priority. */
struct filter {
	uint32_t priority;
	uint32_t handle;
	uint32_t program; /* of a BPF filter: the program's id; else 0 */
	char kind[16];
};

/* Whether the interface has a filter that the function says yes to, at ingress or else at egress.
 * Where only an `ingress` qdisc is, both mean ingress. What cannot be read is not there. */
bool qdisc_has_filter(struct nl_sock *socket, uint32_t ifindex, bool ingress,
		      bool (*is_meant)(const struct filter *filter));
/* The same; *found is the first one. */
bool qdisc_find_filter(struct nl_sock *socket, uint32_t ifindex, bool ingress,
		       bool (*is_meant)(const struct filter *filter), struct filter *found);

/* EEXIST: a qdisc is there, this or `ingress`. 0, or -1 and errno. */
int qdisc_add_clsact(struct nl_sock *socket, uint32_t ifindex);
/* With all that hangs there. */
int qdisc_delete_clsact(struct nl_sock *socket, uint32_t ifindex);

/* Whether it is clsact and nothing hangs there. */
bool qdisc_is_empty_clsact(struct nl_sock *socket, uint32_t ifindex);

#endif
