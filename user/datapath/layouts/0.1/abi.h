/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * abi.h - layout 1, of bpf-portmap 0.1: the maps that have another shape or meaning now, as far as
 * they are read. The text of that release's include/abi.h says more; its structs have the same
 * fields, and "old_" before their names.
 */
#ifndef DATAPATH_LAYOUTS_0_1_ABI_H
#define DATAPATH_LAYOUTS_0_1_ABI_H

#include <linux/types.h>

#include "abi.h"

/* Those maps. */
enum old_map {
	OLD_META,
	OLD_SLOTS,
	OLD_INTERFACES,
	OLD_ATTACHMENTS,
	OLD_FLOWS,
	OLD_FLOWS_NEW,
	OLD_NOTICED,
	OLD_FLOW_PAIRS,
	OLD_MAP_COUNT,
};

enum old_direction {
	OLD_DIRECTION_IN = 1,
	OLD_DIRECTION_OUT = 2,
};

enum old_flow_state {
	OLD_STATE_NEW = 0,
	OLD_STATE_ESTABLISHED = 1,
	OLD_STATE_FIN = 2,
	OLD_STATE_CLOSING = 3,
};

struct old_slot {
	__u32 generation;
	__u32 live;
	__u32 ifindex;
	__u8 host_mac[6];
	__u8 gateway_mac[6];
	__u32 flows;
	__u8 fast_path;
	__u8 reserved[3];
	char attachment[ATTACHMENT_KEY_SIZE];
} __attribute__((aligned(8)));

struct old_interface {
	struct owner owner;
	__u8 role;
	__u8 without_link_header;
	__u8 bridge_mac[6];
	__u32 bridge_ifindex;
	__u8 addresses_excluded;
	__u8 without_fast_path;
	__u8 reserved2[2];
	__u8 address4[16];
	__u8 address6[16];
} __attribute__((aligned(8)));

struct old_attachment {
	struct owner owner;
	__u64 since;
	__u32 ifindex;
	__u8 host_mac[6];
	__u8 state;
	__u8 reserved;
	__u32 host_ports;
	__u32 endpoints;
};

/* flows and flows_new: two entries for each connection, one for each direction. */
struct old_flow_key {
	__u8 source[16];
	__u8 destination[16];
	__u16 source_port;
	__u16 destination_port;
	__u8 protocol;
	__u8 direction;
	__u8 reserved[2];
} __attribute__((aligned(8)));

struct old_flow {
	struct owner owner;
	__u8 address[16];
	__u16 port;
	__u16 peer_port;
	__u8 kind;
	__u8 state;
	__u8 reply;
	__u8 answered;
	__u32 last_seen;
	__u32 pair;
	__u32 out_ifindex;
	__u32 out_looked_up;
	__u64 packets;
	__u64 bytes;
	__u32 sequence_end;
	__u32 acknowledged;
	__u8 sequence_known;
	__u8 acknowledged_known;
	__u8 fin;
	__u8 awaited;
	__u8 unconfirmed;
	__u8 path;
	__u16 path_mtu;
	__u8 path_destination[6];
	__u8 path_source[6];
	__u32 in_ifindex;
	__u32 reserved;
	__u32 left_stack;
};

struct old_meta {
	__u32 layout;
	__u32 complete;
	__u64 netns_cookie;
	__u32 generation;
	__u32 next_slot;
	char program_version[PROGRAM_VERSION_SIZE];
	struct port_range masquerade_ports[MASQUERADE_RANGES];
	__u64 port_seed;
	__u32 offload_dropped;
	__u32 reserved;
} __attribute__((aligned(8)));

struct old_noticed {
	__u64 masquerade_ports[PORT_WORDS];
	__u64 masquerade_all;
	__u64 local_udp_ports[PORT_WORDS];
	__u64 local_container_ports[PORT_WORDS];
};

_Static_assert(sizeof(struct old_slot) == 32 + ATTACHMENT_KEY_SIZE, "as in layout 1");
_Static_assert(sizeof(struct old_interface) == 56, "as in layout 1");
_Static_assert(sizeof(struct old_attachment) == 40, "as in layout 1");
_Static_assert(sizeof(struct old_flow_key) == 40, "as in layout 1");
_Static_assert(sizeof(struct old_flow) == 104, "as in layout 1");
_Static_assert(sizeof(struct old_meta) == 40 + PROGRAM_VERSION_SIZE + 4 * MASQUERADE_RANGES,
	       "as in layout 1");
_Static_assert(sizeof(struct old_noticed) == 8 + 3 * 8 * PORT_WORDS, "as in layout 1");

#endif
