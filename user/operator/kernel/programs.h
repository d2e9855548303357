/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * programs.h - puts the programs into the kernel that only the tool needs.
 */
#pragma once

#include <stdbool.h>

#include "datapath/load/objects.h"
#include "lib/error.h"
#include "operator/kernel/tracing.h"

/* Loads the program that tells which packets the kernel drops, while the other programs are asked
 * to tell, and attaches it to the tracepoint for as long as the file descriptor that it returns is
 * open. *has_reason: whether the kernel tells why (since 5.17). -1: CNI_ERROR_KERNEL_REFUSED, also
 * where it has no BTF. */
int programs_attach_drops(const struct objects *objects, const struct tracing *tracing,
			  const struct trace_filter *filter, bool *has_reason,
			  struct cni_error *err);

/* Loads the program that records connections which conntrack translates (bpf/adopt.bpf.c) over the
 * maps in `objects`, which are all open. Returns its file descriptor. -1: CNI_ERROR_KERNEL_REFUSED,
 * the verifier's last words in the details. */
int programs_load_adopt(const struct objects *objects, struct cni_error *err);
