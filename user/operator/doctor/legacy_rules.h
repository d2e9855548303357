/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* legacy_rules.h - which rules of iptables-legacy may have dropped a packet: the kernel does not
 * tell which one has. */
#ifndef OPERATOR_DOCTOR_LEGACY_RULES_H
#define OPERATOR_DOCTOR_LEGACY_RULES_H

#include <linux/types.h>

#include "operator/kernel/namespaces.h"
#include "trace_event.h"

/* A shell's comment: policies and rules of all hooks that drop or reject, less those that name
 * another protocol, port or address. `inside` NULL: on the host. malloc'ed. */
char *legacy_rules(const struct trace_tuple *tuple, enum protocol protocol,
		   const struct namespace *inside);

#endif
