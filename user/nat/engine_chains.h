/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * engine_chains.h - chains of NAT by the names that engines' port mappers give them: where to look
 * for rules, and whose a rule is.
 */
#pragma once

#include "nat/nat_rule.h"

#define NAT_TABLE_OF_IPTABLES "nat"
#define NAT_TABLE_OF_PORTMAP "cni_hostport"
#define NAT_CHAIN_OF_PORTMAP "CNI-HOSTPORT-DNAT"

#define NAT_ENGINE_PORTMAP "portmap"

/* What can be looked for in a chain without looking at all of them. */
enum nat_start {
	NAT_START_NONE,
	NAT_START_PORTMAP, /* portmap's rules, also those that translate nothing */
	NAT_START_MAPPER,  /* a port mapper's rules */
	NAT_START_HOOK,    /* where packets come first */
};

struct nat_chain {
	const char *engine; /* NULL: that of the chains that it jumps to */
	const char *table;  /* NULL: any */
	const char *name;   /* the front of one where `start` is NAT_START_NONE */
	enum nat_start start;
	uint8_t hooks; /* from where packets come to it, bits of enum nat_hook */
};

/* Ends at a chain without a name. */
extern const struct nat_chain nat_chains[];

/* Returns who writes such rules: "portmap", "docker", "netavark", "kube-proxy", or "nat". */
const char *nat_engine_of(const struct nat_rule *rule);
