/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * adoption.h - what `bpf-portmap migrate` passes to the program adopt, and `bpf-portmap upgrade` to
 * the program take_over (bpf/adopt.bpf.c).
 *
 * BPF code includes it after vmlinux.h, user code after <linux/types.h>.
 */
#ifndef BPF_PORTMAP_ADOPTION_H
#define BPF_PORTMAP_ADOPTION_H

#include "abi.h"

#define ADOPTION_OFFSET 14 /* in the data of the test run: behind an Ethernet header */

/* A connection that conntrack translates. The inside is the host's address and port, the outside
 * the peer's. */
struct adoption {
	struct connection_key key;
	__u32 idle; /* seconds since its last packet; TCP: not used */
	__u32 reserved;
} __attribute__((aligned(8)));

/* A connection of another layout. The fields are those of struct connection_key and connection. */
struct taken_over {
	struct connection_key key;
	struct owner owner;
	__u8 external_address[16];
	__u16 external_port;
	__u16 peer_port;
	__u32 state; /* STATE_REPLIED, STATE_ASSURED, STATE_CHARGED_OUT, STATE_DATA, STATE_FINS */
	__u32 last_seen;
	enum flow_kind kind;
	__u8 begun_inside;
	__u8 reserved[2];
	__u32 packets[2];
	__u64 bytes[2];
} __attribute__((aligned(8)));

/* What the programs return. */
enum adopted {
	ADOPTED,         /* it has a record now, or had one */
	ADOPTED_HALF,    /* it has one, but the table or a share has no room for an assured one */
	ADOPTION_FAILED, /* it has none */
};

#endif
