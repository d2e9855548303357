/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * nat_rules.h - the rules of this network namespace that give packets another destination: those of
 * nftables, iptables-nft and iptables-legacy, before routing (PREROUTING) and where processes of
 * the host send (OUTPUT).
 */
#pragma once

#include "lib/error.h"
#include "nat/nat_question.h"

/* In the order in which packets meet them; what a rule jumps to comes before it. Finds those that
 * translate packets themselves or by a chain that they jump to (its destination is theirs, then),
 * and that have a condition on the destination port, or translate whatever the port is. They have
 * the conditions of the rules that lead to them, too; one at both hooks is there once. No kernel
 * module is loaded by looking. Release the list also after a failure.
 * CNI_ERROR_KERNEL_REFUSED: there are rules, and they cannot be read. */
int nat_rules_find(struct nat_rule_list *found, const struct nat_question *question,
		   struct cni_error *err);
