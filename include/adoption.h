/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * adoption.h - what `bpf-portmap migrate` passes to the program adopt (bpf/adopt.bpf.c).
 *
 * BPF code includes it after vmlinux.h, user code after <linux/types.h>.
 */
#pragma once

#include "abi.h"

#define ADOPTION_OFFSET 14 /* in the data of the test run: behind an Ethernet header */

/* A connection that conntrack translates. The inside is the host's address and port, the outside
 * the peer's. */
struct adoption {
	struct connection_key key;
	__u32 idle; /* seconds since its last packet; TCP: not used */
	__u32 reserved;
} __attribute__((aligned(8)));

/* What the program returns. */
enum adopted {
	ADOPTED,         /* it has a record now, or had one */
	ADOPTED_HALF,    /* it has one, but the table or a share has no room for an assured one */
	ADOPTION_FAILED, /* it has none */
};
