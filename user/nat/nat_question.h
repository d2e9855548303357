/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * nat_question.h - which rules are looked for, and what was found.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

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

void nat_rule_list_append(struct nat_rule_list *list, const struct nat_rule *rule);
void nat_rule_list_release(struct nat_rule_list *list);

#define cleanup_nat_rules __attribute__((cleanup(nat_rule_list_release)))
