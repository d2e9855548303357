/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * nat_rules.h - the rules of this network namespace that give packets another destination before
 * they are routed: those of nftables, iptables-nft and iptables-legacy.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/error.h"
#include "nat/nat_rule.h"

/* Where rules are looked for, and in the chains that these jump to. */
enum nat_place {
	/* All chains through which packets come before they are routed. Takes as long as there are
	 * many rules. */
	NAT_AT_PREROUTING,
	/* Chains by the names that port mappers give them: portmap, Docker, netavark. The kernel
	 * finds them by name, so that the rules of others, kube-proxy's say, cost nothing; it tells
	 * only the table of iptables-legacy whole. */
	NAT_OF_PORT_MAPPERS,
	/* portmap's alone, also those that translate nothing. */
	NAT_OF_PORTMAP,
};

#define NAT_TABLE_OF_PORTMAP "cni_hostport"
#define NAT_CHAIN_OF_PORTMAP "CNI-HOSTPORT-DNAT"

struct nat_question {
	enum nat_place place;
	/* Only rules that it says yes to are looked at, and chains behind them. */
	bool (*concerns)(const void *context, const struct nat_rule *rule);
	const void *context;
};

/* Begins as {0}. */
struct nat_rule_list {
	struct nat_rule *rules;
	size_t count;
};

/* In the order in which packets meet them; what a rule jumps to comes before it. Finds those that
 * have a condition on the destination port, and that translate packets themselves or by a chain
 * that they jump to: its destination is theirs, then. Verdict maps with an address are not looked
 * into. No kernel module is loaded by looking. Release the list also after a failure.
 * CNI_ERROR_KERNEL_REFUSED: there are rules, and they cannot be read. */
int nat_rules_find(struct nat_rule_list *found, const struct nat_question *question,
		   struct cni_error *err);

void nat_rule_list_release(struct nat_rule_list *list);

#define cleanup_nat_rules __attribute__((cleanup(nat_rule_list_release)))
