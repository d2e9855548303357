/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * probe_remedy.h - what opens a firewall that drops all that nobody has let through. A rule that
 * drops some on purpose is not for us to open.
 */
#pragma once

#include "operator/doctor/probe.h"

/* What is told about. */
struct cause {
	struct doctor *doctor;
	const struct subject *subject;
	const struct probe_way *way;
	const struct probe_result *result;
	char uplink[IF_NAMESIZE];
	char *rule; /* the rule that drops it, if nft tells; NULL */
	/* Why the kernel has dropped it; "": it has not. */
	const char *reason;
	bool is_netfilter; /* iptables-legacy, or somebody whom nftables does not trace */
};

/* malloc'ed; NULL: none. Of iptables-legacy, whose kernel does not tell which rule it was, a
 * shell's comment: policies and rules that drop or reject, and count one more packet. */
char *probe_remedy(const struct cause *cause);
