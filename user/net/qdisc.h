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

/* Whether it is clsact and nothing hangs there. */
bool qdisc_is_empty_clsact(struct nl_sock *socket, uint32_t ifindex);

#endif
