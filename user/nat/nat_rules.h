/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * nat_rules.h - the rules of this network namespace that give packets another destination: those of
 * nftables, iptables-nft and iptables-legacy, before routing (PREROUTING) and where processes of
 * the host send (OUTPUT).
 */
#pragma once

#include "lib/error.h"
#include "nat/nat_rule.h"

/* Where rules are looked for, and in the chains that these jump to. */
enum nat_place {
	/* All chains at these hooks. Takes as long as there are many rules: with the 10,000 of
	 * 2,500 Services in iptables-nft 30 ms, in iptables-legacy 20 ms. */
	NAT_EVERYWHERE,
	/* The same where that is quickly done, as ADD needs it. Where there are hundreds of chains,
	 * those of iptables, of port mappers and of kube-proxy by their names; and no chain that
	 * has hundreds of rules. kube-proxy's maps of nftables are asked for single ports, however
	 * many they have. The table of iptables-legacy the kernel tells only whole. */
	NAT_WHERE_QUICK,
	/* portmap's alone, also those that translate nothing. */
	NAT_OF_PORTMAP,
};

struct nat_question {
	enum nat_place place;
	const struct nat_asked *asked; /* rules that may take one of these are looked at */
	/* NAT_OF_PORTMAP: those that it says yes to are, and `asked` is NULL. */
	bool (*concerns)(const void *context, const struct nat_rule *rule);
	const void *context;
};

/* Begins as {0}. */
struct nat_rule_list {
	struct nat_rule *rules;
	size_t count;
	bool is_partial; /* with NAT_WHERE_QUICK: there is more than was looked at */
};

void nat_rule_list_release(struct nat_rule_list *list);

#define cleanup_nat_rules __attribute__((cleanup(nat_rule_list_release)))

/* In the order in which packets meet them; what a rule jumps to comes before it. Finds those that
 * translate packets themselves or by a chain that they jump to (its destination is theirs, then),
 * and that have a condition on the destination port, or translate whatever the port is. They have
 * the conditions of the rules that lead to them, too; one at both hooks is there once. No kernel
 * module is loaded by looking. Release the list also after a failure.
 * CNI_ERROR_KERNEL_REFUSED: there are rules, and they cannot be read. */
int nat_rules_find(struct nat_rule_list *found, const struct nat_question *question,
		   struct cni_error *err);
