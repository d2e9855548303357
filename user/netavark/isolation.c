/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* isolation.c - removes rules by iptables, as the plugin firewall makes them. */
#include "netavark/isolation.h"

#include <stddef.h>

#include "netavark/run_program.h"

#define COMMENT "CNI firewall plugin rules (ingressPolicy: same-bridge)"
#define STAGE_1 "CNI-ISOLATION-STAGE-1"
#define STAGE_2 "CNI-ISOLATION-STAGE-2"
#define LOCK_SECONDS "5" /* for iptables of others to end */

static void remove_rules(const char *program, const char *bridge)
{
	const char *const stage_1[] = {program, "-w",      LOCK_SECONDS, "-D",    STAGE_1, "-i",
				       bridge,  "!",       "-o",         bridge,  "-j",    STAGE_2,
				       "-m",    "comment", "--comment",  COMMENT, NULL};
	const char *const stage_2[] = {program,   "-w",        LOCK_SECONDS, "-D",   STAGE_2,
				       "-o",      bridge,      "-j",         "DROP", "-m",
				       "comment", "--comment", COMMENT,      NULL};

	/* They fail mostly because there is no such rule. */
	run_program(stage_1);
	run_program(stage_2);
}

void isolation_remove(const char *bridge)
{
	remove_rules("iptables", bridge);
	remove_rules("ip6tables", bridge);
}
