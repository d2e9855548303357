/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * portmap_rules.h - the rules by which the reference plugin portmap sends packets to containers,
 * in the table nat of iptables (CNI-HOSTPORT-DNAT), in both its forms, and in the table
 * cni_hostport of nftables.
 */
#pragma once

#include "lib/error.h"
#include "nat/nat_rules.h"

/* A rule of one container, in one family. In iptables one jumps to the container's chain for the
 * ports of a protocol, and those there come before it. */
struct portmap_entry {
	bool is_address; /* the rule, or the chain that it jumps to, leads to an address */
	bool is_port;    /* it maps a port */
	bool changed;    /* portmap would not write it so, or another rule comes before it */
	/* It jumps for some packets to these ports alone, as portmap writes it for a list with
	 * conditions; or somebody has changed it so. */
	bool conditional;
	struct nat_rule rule;
	char network[NAT_COMMENT_SIZE]; /* "": nftables does not say */
	char id[NAT_COMMENT_SIZE];      /* never "" */
};

/* Begins as {0}. */
struct portmap_entries {
	struct portmap_entry *list;
	size_t count;
};

/* Reads those of one container, or with `id` NULL of all. Loads no kernel module. Release it also
 * after a failure. CNI_ERROR_KERNEL_REFUSED: there may be such rules, and they cannot be read. */
int portmap_entries_read(struct portmap_entries *entries, const char *id, struct cni_error *err);
void portmap_entries_release(struct portmap_entries *entries);

/* Removes those of this container that are not of iptables-legacy, all or none.
 * CNI_ERROR_KERNEL_REFUSED, CNI_ERROR_TRY_AGAIN: one had gone since it was read. */
int portmap_entries_remove(const struct portmap_entries *entries, const char *network,
			   const char *id, struct cni_error *err);

bool portmap_entry_is_of(const struct portmap_entry *entry, const char *network, const char *id);

#define cleanup_portmap_entries __attribute__((cleanup(portmap_entries_release)))
