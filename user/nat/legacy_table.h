/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * legacy_table.h - a table of iptables-legacy, which the kernel hands out whole, and matches and
 * targets of iptables, which rules of nftables may have, too.
 */
#pragma once

#include "nat/nat_rule.h"

#define LEGACY_HOOKS 5

struct legacy_table {
	const char *name;
	bool ipv4;
	uint32_t hook_begin[LEGACY_HOOKS]; /* where each hook's chain begins */
	uint32_t valid_hooks;              /* a bit for each that has one */
	const uint8_t *entries;
	size_t size;
};

bool legacy_table_exists(bool ipv4, const char *name);

/* Reads one that exists. 0; -1 and errno. `entries` is malloc'ed. */
int legacy_table_read(bool ipv4, const char *name, struct legacy_table *table);

/* Returns whether the match that portmap's rules have is in use, which saves reading the table: one
 * of 10,000 rules takes 20 ms. */
bool legacy_may_have_portmap(void);

/* Finds where the chain begins that somebody has made with this name. */
bool legacy_chain_find(const struct legacy_table *table, const char *name, size_t *offset);

/* Calls `take` for each rule of the chain that begins there. */
void legacy_chain_parse(const struct legacy_table *table, size_t offset,
			void (*take)(void *context, const struct nat_rule *rule), void *context);

/* Reads what a match or a target says about destinations. Without any I/O. */
void xt_rule_take_match(struct nat_rule *rule, const char *name, unsigned int revision,
			struct bytes info);
void xt_rule_take_target(struct nat_rule *rule, const char *name, unsigned int revision,
			 struct bytes info);
