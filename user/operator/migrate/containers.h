/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * containers.h - whose ports portmap has mapped: which of these containers live, and what ADD would
 * be told of them.
 */
#ifndef OPERATOR_MIGRATE_CONTAINERS_H
#define OPERATOR_MIGRATE_CONTAINERS_H

#include <jansson.h>
#include <net/if.h>

#include "operator/migrate/rules.h"

struct nl_sock;

/* An attachment of a live container, for which there are rules. */
struct migrating {
	char network[RULE_NAME_SIZE];
	char id[RULE_NAME_SIZE];
	char ifname[IF_NAMESIZE];
	int netns;
	char *arguments; /* CNI_ARGS at its ADD; "" where nobody has kept them */
	json_t *ips;     /* its addresses, as in a result */
};

/* Begins as {0}. */
struct migrating_list {
	struct migrating *list;
	size_t count;
};

/* Finds the container of each rule. It lives if a network namespace that a veth of this host leads
 * to has its address. The rules become RULE_MAP, with the number of their container, RULE_DEAD, or
 * RULE_LEFT. What runtimes keep of their ADDs (libcni's cache) gives the names that a rule
 * lacks. */
void migrating_find(struct migrating_list *containers, struct portmap_rules *rules,
		    struct nl_sock *socket);
void migrating_release(struct migrating_list *containers);

#define cleanup_migrating __attribute__((cleanup(migrating_release)))

#endif
