/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * nat_rules.h - the rules of this network namespace that give packets another destination before
 * they are routed: those of nftables, iptables-nft and iptables-legacy.
 */
#ifndef NET_NAT_RULES_H
#define NET_NAT_RULES_H

#include "cni/error.h"
#include "net/nat_graph.h"

/* Finds those that have a condition on the destination port and that `concerns` says yes to. They
 * are in graph->rules, those that are `effective`; release it also after a failure. Verdict maps
 * are not looked into. No kernel module is loaded by looking: where there are no rules this takes
 * some microseconds. Code 102: there are some, and they cannot be read. */
int nat_rules_find(struct nat_graph *graph,
		   bool (*concerns)(const void *context, const struct nat_rule *rule),
		   const void *context, struct cni_error *err);

#endif
