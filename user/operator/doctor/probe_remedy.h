/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * probe_remedy.h - the commands that let packets through a firewall which drops whatever no rule
 * accepts: for the port that was asked about, and where a client is named for that client alone.
 * A rule that drops certain packets on purpose is the administrator's, and so are rules that let
 * certain clients to the port: there is no remedy for whoever else comes.
 */
#pragma once

#include "operator/doctor/ruleset.h"

/* A packet that was lost, or not answered, and what is known about it. */
struct cause {
	struct doctor *doctor;
	const struct subject *subject;
	const struct probe_way *way;
	const struct probe_result *result;
	char uplink[IF_NAMESIZE];
	struct ruleset ruleset; /* in which it was dropped */
	char *rule;             /* the rule that drops it, if nft tells; NULL */
	char *lets_in;          /* one that lets others to the port; NULL */
	/* The kernel's reason for dropping it; "": the kernel did not. */
	const char *reason;
	bool is_netfilter; /* by iptables-legacy, or by what nftables does not trace */
};

/* Returns who has the packet, malloc'ed, where another NAT of the host has given it a
 * destination after ours; NULL: it is not known that one has. */
char *probe_nat_cause(const struct cause *cause);

/* Returns a rule, malloc'ed, that lets others to the port at which this client is dropped for want
 * of a rule; NULL: there is none. */
char *probe_lets_in(const struct cause *cause);

/* Returns the remedy, malloc'ed; NULL: there is none. For iptables-legacy, of which the kernel does
 * not tell the rule, it is a shell's comment: policies and rules that drop or reject, and count one
 * more packet. */
char *probe_remedy(const struct cause *cause);
