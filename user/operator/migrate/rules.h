/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rules.h - the rules by which the reference plugin portmap maps ports: in chains of iptables
 * (CNI-HOSTPORT-DNAT, CNI-DN-...), or in the table cni_hostport of nftables.
 */
#ifndef OPERATOR_MIGRATE_RULES_H
#define OPERATOR_MIGRATE_RULES_H

#include <jansson.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"
#include "lib/error.h"

#define RULE_NAME_SIZE 256
#define RULE_CHAIN_SIZE 64
#define RULE_REASON_SIZE 512

enum rule_fate {
	RULE_UNDECIDED,
	RULE_DEAD,   /* its container is gone: it is removed */
	RULE_MAP,    /* its port is to be mapped by us, and it is removed then */
	RULE_MAPPED, /* that was done */
	RULE_LEFT,   /* it stays, for the reason given */
};

/* A port that portmap has mapped, in one family. */
struct portmap_rule {
	size_t source; /* the table that has it, by number */
	char chain[RULE_CHAIN_SIZE];
	json_int_t handle; /* nftables */
	size_t order;      /* iptables: of the jump to its chain, from 1; 0: there is none */
	struct portmap_key key;
	uint8_t container_address[16];
	uint16_t container_port;
	char network[RULE_NAME_SIZE]; /* nftables: "" until the container is found */
	char id[RULE_NAME_SIZE];
	bool masquerades;     /* hairpin ("snat") */
	bool masquerades_all; /* every client ("masqAll") */
	/* What migrate does with it. */
	enum rule_fate fate;
	char reason[RULE_REASON_SIZE];
	size_t container;  /* of RULE_MAP: by number */
	unsigned int kept; /* connections */
	unsigned int not_kept;
};

/* A table that has such rules. */
struct rule_source {
	const char *name;    /* "iptables", "iptables-legacy", "nftables" */
	const char *save;    /* of iptables: the program that prints the table; NULL: nftables */
	const char *restore; /* and the one that changes it */
	bool ipv6;
	bool others;   /* chains that containers share have rules that portmap does not write */
	char *text;    /* what it printed */
	json_t *table; /* nftables */
};

/* Begins as {0}. */
struct portmap_rules {
	struct rule_source *sources;
	size_t source_count;
	struct portmap_rule *rules; /* in the order in which packets come to them */
	size_t count;
};

/* Finds them all. CNI_ERROR_IO: a program that must read them fails. */
int portmap_rules_read(struct portmap_rules *rules, struct cni_error *err);
void portmap_rules_release(struct portmap_rules *rules);

/* Removes those that are RULE_DEAD and RULE_MAPPED, from each table at once; and where nothing else
 * is left, the chains that jump to them. Goes on after a failure. CNI_ERROR_IO. */
int portmap_rules_remove(struct portmap_rules *rules, struct cni_error *err);

#define RULE_NOT_UNDERSTOOD "it is no rule that portmap writes"
/* Makes the rule RULE_LEFT, for this reason. */
void rule_leave(struct portmap_rule *rule, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Whether the rule is removed. */
static inline bool rule_goes(const struct portmap_rule *rule)
{
	return rule->fate == RULE_DEAD || rule->fate == RULE_MAPPED;
}

#define cleanup_rules __attribute__((cleanup(portmap_rules_release)))

/* Both kinds of tables. */
int iptables_rules_read(struct portmap_rules *rules, struct cni_error *err);
int iptables_rules_remove(const struct portmap_rules *rules, size_t source, struct cni_error *err);
int nftables_rules_read(struct portmap_rules *rules, struct cni_error *err);
int nftables_rules_remove(const struct portmap_rules *rules, size_t source, struct cni_error *err);

#endif
