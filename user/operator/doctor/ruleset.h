/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ruleset.h - what stands in the table of nftables in which a packet was dropped: which rule it
 * was, and whom the rules beside it let through. Rules are read as nft prints them. Of one that is
 * not understood it is taken that it may concern the packet.
 */
#pragma once

#include "operator/doctor/probe.h"

struct ruleset {
	char *text; /* NULL: nft is not installed, or cannot tell */
};

/* A packet that is to get through: to a port of a container, or out of the container. */
struct wanted_packet {
	bool is_outwards;
	const uint8_t *container;
	const char *inner, *protocol; /* the interface on the container's side; "tcp" */
	uint16_t port;                /* the container's; only inwards */
};

/* Asks nft on the host, or in the container's namespace; NULL: on the host. */
void ruleset_read(struct ruleset *ruleset, const struct nft_drop *drop,
		  const struct namespace *inside);
void ruleset_release(struct ruleset *ruleset);

#define cleanup_ruleset __attribute__((cleanup(ruleset_release)))

/* Returns the rule, malloc'ed, as nft prints it; NULL: it is not there. */
char *ruleset_rule(const struct ruleset *ruleset, const char *chain, uint64_t handle);

/* Returns a rule, malloc'ed, by which this chain, or one that it calls, accepts such packets from
 * somebody; NULL: none does. What it says about established connections does not count. */
char *ruleset_accepts(const struct ruleset *ruleset, const char *chain,
		      const struct wanted_packet *packet);

/* Returns whether the chain accepts all that belongs to established connections. */
bool ruleset_accepts_answers(const struct ruleset *ruleset, const char *chain);

/* Returns whether the chain is where packets are forwarded. */
bool ruleset_is_forward(const struct ruleset *ruleset, const char *chain);

/* Returns whether the chain has this very rule. */
bool ruleset_has_rule(const struct ruleset *ruleset, const char *chain, const char *rule);

/* Returns whether any rule of the table counts packets in a time, or remembers who has sent. */
bool ruleset_has_limits(const struct ruleset *ruleset);

/* The same of all tables of the host. */
bool ruleset_of_host_has_limits(void);

/* Returns a table of the host, malloc'ed, that sees what asks for MAC addresses: "bridge b". NULL:
 * there is none. */
char *ruleset_table_below_ip(void);

/* Returns whether the rule looks at who sends. */
bool rule_is_by_source(const char *rule);
