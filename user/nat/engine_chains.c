/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* engine_chains.c - chains of NAT by the names that engines' port mappers give them. */
#include "nat/engine_chains.h"

#include <string.h>

#define BOTH (NAT_FROM_OUTSIDE | NAT_FROM_HOST)

const struct nat_chain nat_chains[] = {
	{NAT_ENGINE_PORTMAP, NAT_TABLE_OF_IPTABLES, NAT_CHAIN_OF_PORTMAP, NAT_START_PORTMAP, BOTH},
	{NAT_ENGINE_PORTMAP, NAT_TABLE_OF_PORTMAP, "hostip_hostports", NAT_START_PORTMAP, BOTH},
	{NAT_ENGINE_PORTMAP, NAT_TABLE_OF_PORTMAP, "hostports", NAT_START_PORTMAP, BOTH},
	{NAT_ENGINE_PORTMAP, NAT_TABLE_OF_PORTMAP, "masquerading", NAT_START_PORTMAP, 0},
	{NAT_ENGINE_PORTMAP, NULL, "CNI-", NAT_START_NONE, 0},
	{"docker", NAT_TABLE_OF_IPTABLES, "DOCKER", NAT_START_MAPPER, BOTH},
	{"docker", "docker-bridges", "nat-prerouting-and-output", NAT_START_MAPPER, BOTH},
	{"docker", "docker-bridges", "", NAT_START_NONE, 0},
	{"docker", NULL, "DOCKER", NAT_START_NONE, 0},
	{"netavark", NAT_TABLE_OF_IPTABLES, "NETAVARK-HOSTPORT-DNAT", NAT_START_MAPPER, BOTH},
	{"netavark", "netavark", "NETAVARK-HOSTPORT-DNAT", NAT_START_MAPPER, BOTH},
	{"netavark", NULL, "NETAVARK", NAT_START_NONE, 0},
	{"netavark", NULL, "nv_", NAT_START_NONE, 0},
	{"kube-proxy", "kube-proxy", "nat-prerouting", NAT_START_HOOK, NAT_FROM_OUTSIDE},
	{"kube-proxy", "kube-proxy", "nat-output", NAT_START_HOOK, NAT_FROM_HOST},
	{"kube-proxy", "kube-proxy", "", NAT_START_NONE, 0},
	{"kube-proxy", NULL, "KUBE-", NAT_START_NONE, 0},
	{NULL, NAT_TABLE_OF_IPTABLES, "PREROUTING", NAT_START_HOOK, NAT_FROM_OUTSIDE},
	{NULL, NAT_TABLE_OF_IPTABLES, "OUTPUT", NAT_START_HOOK, NAT_FROM_HOST},
	{0},
};

static bool is_of(const struct nat_chain *chain, const struct nat_rule *rule)
{
	size_t length = strlen(chain->name) + (chain->start != NAT_START_NONE);

	return (!chain->table || !strcmp(chain->table, rule->table)) &&
	       !strncmp(chain->name, rule->chain_name, length);
}

const char *nat_engine_of(const struct nat_rule *rule)
{
	for (const struct nat_chain *chain = nat_chains; chain->name; chain++)
		if (chain->engine && is_of(chain, rule))
			return chain->engine;
	return "nat";
}
