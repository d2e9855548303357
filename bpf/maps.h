/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* maps.h - the pinned maps; what they hold is said in abi.h. */
#ifndef BPF_PORTMAP_MAPS_H
#define BPF_PORTMAP_MAPS_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include "abi.h"

/*
 * A global function: the verifier checks it once, by itself, instead of anew in
 * every state of every caller; with loops around them that is the difference
 * between milliseconds and refusal. (Since 5.6; with pointers to structs since
 * 5.12.) The price: it must say what it does with NULL, which nobody passes; a call
 * takes a nanosecond or two, so what every packet does stands where it is done; and of
 * the 512 bytes of stack that all who call each other have, its frame takes a multiple of
 * 32 (of 16 on newer kernels).
 *
 * A loop is walked through turn by turn all the same. What it does goes into such a
 * function, and one of many turns becomes short ones, one inside the other.
 */
#define VERIFIED_ONCE __attribute__((noinline))

#define HASH_OF(map, key_type, value_type, entries) \
	struct { \
		__uint(type, BPF_MAP_TYPE_HASH); \
		__uint(map_flags, BPF_F_NO_PREALLOC); \
		__uint(max_entries, entries); \
		__type(key, key_type); \
		__type(value, value_type); \
	} map SEC(".maps")

#define LRU_OF(map, key_type, value_type, entries) \
	struct { \
		__uint(type, BPF_MAP_TYPE_LRU_HASH); \
		__uint(max_entries, entries); \
		__type(key, key_type); \
		__type(value, value_type); \
	} map SEC(".maps")

#define ARRAY_OF(map, array_type, value_type, entries) \
	struct { \
		__uint(type, array_type); \
		__uint(max_entries, entries); \
		__type(key, __u32); \
		__type(value, value_type); \
	} map SEC(".maps")

HASH_OF(portmaps, struct portmap_key, struct portmap, MAX_PORTMAPS);
HASH_OF(endpoints, struct endpoint_key, struct endpoint, MAX_ENDPOINTS);
HASH_OF(interfaces, __u32, struct interface, MAX_INTERFACES);
HASH_OF(host_addresses, struct host_address_key, struct host_address, MAX_HOST_ADDRESSES);
HASH_OF(policies, __u32, struct policy, MAX_SLOTS);
/* No program reads these: they are user space's own, kept alive by being bound to the
 * programs. */
HASH_OF(networks, struct network_key, struct network, MAX_NETWORKS);
HASH_OF(attachments, struct attachment_key, struct attachment, MAX_SLOTS);
ARRAY_OF(slots, BPF_MAP_TYPE_ARRAY, struct slot, MAX_SLOTS);
/* _HASH, because a DEVMAP serves one type of program only. */
ARRAY_OF(veths, BPF_MAP_TYPE_DEVMAP_HASH, __u32, MAX_SLOTS);
ARRAY_OF(meta, BPF_MAP_TYPE_ARRAY, struct meta, 1);
ARRAY_OF(published_ports, BPF_MAP_TYPE_ARRAY, __u64, PORT_WORDS);
ARRAY_OF(noticed, BPF_MAP_TYPE_ARRAY, struct noticed, 1);
ARRAY_OF(counters, BPF_MAP_TYPE_PERCPU_ARRAY, struct counters, 1);
ARRAY_OF(scratch, BPF_MAP_TYPE_PERCPU_ARRAY, struct flow, 2); /* see flow_create.h */
/* The loader sets the sizes of flows and flow_pairs from the machine's memory. flows is
 * allocated as a whole: an entry must be had when there is a pair for it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MIN_FLOWS);
	__type(key, struct flow_key);
	__type(value, struct flow);
} flows SEC(".maps");
ARRAY_OF(flow_pairs, BPF_MAP_TYPE_ARRAY, struct flow_pair, FLOW_PAIRS(MIN_FLOWS));
LRU_OF(flows_new, struct flow_key, struct flow, MAX_NEW_FLOWS);
LRU_OF(socket_flows, struct socket_flow_key, struct socket_flow, MAX_SOCKET_FLOWS);
LRU_OF(fragments, struct fragment_key, struct fragment, MAX_FRAGMENTED);
ARRAY_OF(held, BPF_MAP_TYPE_ARRAY, struct held_fragment, MAX_HELD);

#endif
