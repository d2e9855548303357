/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * nat_rules.h - the rules of this network namespace that give packets another destination before
 * they are routed: those of nftables, iptables-nft and iptables-legacy.
 */
#ifndef NET_NAT_RULES_H
#define NET_NAT_RULES_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/error.h"
#include "net/nat_rule.h"

/* Begins as {0}. */
struct nat_rule_list {
	struct nat_rule *rules;
	size_t count;
};

/* In the order in which packets meet them. Finds those that have a condition on the destination
 * port, that packets come to, and that translate them themselves or by a chain that they jump to.
 * Only rules that `concerns` says yes to are looked at, and chains behind them. Verdict maps
 * with an address are not looked into. No kernel module is loaded by looking. Release the list also
 * after a failure. CNI_ERROR_KERNEL_REFUSED: there are rules, and they cannot be read. */
int nat_rules_find(struct nat_rule_list *found,
		   bool (*concerns)(const void *context, const struct nat_rule *rule),
		   const void *context, struct cni_error *err);

void nat_rule_list_release(struct nat_rule_list *list);

#define cleanup_nat_rules __attribute__((cleanup(nat_rule_list_release)))

#endif
