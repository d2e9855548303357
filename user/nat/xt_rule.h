/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * xt_rule.h - matches and targets of iptables, as they stand in the kernel. Without any I/O.
 */
#pragma once

#include "nat/nat_rule.h"

/* Reads what they say about destinations. */
void xt_rule_take_match(struct nat_rule *rule, const char *name, unsigned int revision,
			struct bytes info);
void xt_rule_take_target(struct nat_rule *rule, const char *name, unsigned int revision,
			 struct bytes info);
