/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ipt_table.h - the table `nat` of iptables-legacy as the kernel hands it out. Without any I/O.
 */
#ifndef NET_IPT_TABLE_H
#define NET_IPT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/nat_rule.h"

#define IPT_HOOKS 5

/* Where the kernel says that each hook's chain begins. */
struct ipt_hooks {
	uint32_t begin[IPT_HOOKS];
	uint32_t valid; /* a bit for each hook that has one */
};

struct legacy_table {
	bool ipv4;
	struct ipt_hooks hooks;
	const uint8_t *entries;
	size_t size;
};

/* Calls `take` for each rule of the chain that begins there. */
void ipt_chain_parse(const struct legacy_table *table, size_t offset,
		     void (*take)(void *context, const struct nat_rule *rule), void *context);

#endif
