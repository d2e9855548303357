/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* nftables.h - requests to nf_tables, and the table of iptables-legacy. */
#ifndef NET_NFTABLES_H
#define NET_NFTABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/nat_rule.h"

struct nl_msg;
struct nlmsghdr;

/* False: nf_tables has no rules here; asking it would only load it. */
bool nftables_may_have_rules(void);

/* Begins a request, of nft's family. */
struct nl_msg *nftables_begin(int type, uint8_t family, int flags);

/* What nft_rule_parse() and others take. */
struct bytes nftables_attributes(const struct nlmsghdr *message);

/* Reads the table `nat` of iptables-legacy; entries NULL: it has none. 0; -1 and errno. `entries`
 * is malloc'ed. */
int legacy_table_read(bool ipv4, struct legacy_table *table);

#endif
