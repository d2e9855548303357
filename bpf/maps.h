/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* maps.h - the pinned maps; abi.h describes their contents. */
#pragma once

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include "abi.h"

/* The verifier checks a global function once, by itself, instead of in every state of every caller.
 * The price: it must handle NULL, which no caller passes; a call costs a nanosecond or two; and its
 * frame takes a multiple of 32 bytes (16 on newer kernels) of the 512 bytes of stack that a whole
 * call chain has. The verifier still walks through every iteration of a loop. So a loop's body
 * becomes such a function, and a long loop becomes nested short ones, or bpf_loop(): its callback,
 * which is a frame of the chain, is walked through once or twice. */
#define GLOBAL_FUNCTION __attribute__((noinline))

#define INLINE static __always_inline

#define MAP_OF(map, map_type, flags, key_type, value_type, entries) \
	struct { \
		__uint(type, map_type); \
		__uint(map_flags, flags); \
		__uint(max_entries, entries); \
		__type(key, key_type); \
		__type(value, value_type); \
	} map SEC(".maps")

#define HASH_OF(map, key_type, value_type, entries) \
	MAP_OF(map, BPF_MAP_TYPE_HASH, BPF_F_NO_PREALLOC, key_type, value_type, entries)

#define ARRAY_OF(map, array_type, value_type, entries) \
	MAP_OF(map, array_type, 0, __u32, value_type, entries)

/* The value of a map with one entry is never NULL. The verifier does not know that, so it is shown
 * a way out: to return 1 is allowed everywhere. */
#define SINGLE(map) \
	({ \
		__u32 only = 0; \
		typeof(map.value) value = bpf_map_lookup_elem(&map, &only); \
		asm volatile("if %0 != 0 goto +2\nr0 = 1\nexit" : "+r"(value)); \
		value; \
	})

HASH_OF(portmaps, struct portmap_key, struct portmap_succession, MAX_PORTMAPS);
HASH_OF(nat_ports, struct portmap_key, struct nat_port, MAX_NAT_PORTS);
HASH_OF(endpoints, struct endpoint_key, struct endpoint, MAX_ENDPOINTS);
HASH_OF(interfaces, __u32, struct interface, MAX_INTERFACES);
HASH_OF(host_addresses, struct host_address_key, struct host_address, MAX_HOST_ADDRESSES);
HASH_OF(policies, __u32, struct policy, MAX_SLOTS);
HASH_OF(containers, __u64, struct container_homes, MAX_SLOTS);
/* Only user space reads these; being bound to the programs keeps them alive. */
HASH_OF(networks, struct network_key, struct network, MAX_NETWORKS);
HASH_OF(attachments, struct attachment_key, struct attachment, MAX_SLOTS);
ARRAY_OF(slots, BPF_MAP_TYPE_ARRAY, struct slot, MAX_SLOTS);
/* _HASH, because a DEVMAP can be used by one program type only. */
ARRAY_OF(veths, BPF_MAP_TYPE_DEVMAP_HASH, __u32, MAX_SLOTS);
ARRAY_OF(meta, BPF_MAP_TYPE_ARRAY, struct meta, 1);
ARRAY_OF(published_ports, BPF_MAP_TYPE_ARRAY, __u64, PUBLISHED_WORDS);
ARRAY_OF(external_ports, BPF_MAP_TYPE_ARRAY, struct external_port, EXTERNAL_PORTS);
ARRAY_OF(noticed, BPF_MAP_TYPE_ARRAY, struct noticed, 1);
ARRAY_OF(counters, BPF_MAP_TYPE_PERCPU_ARRAY, struct counters, 1);
ARRAY_OF(endpoint_addresses, BPF_MAP_TYPE_ARRAY, __u64, PORT_WORDS);
/* The loader sets the sizes of these four by the machine's memory. Entries of the two tables are
 * preallocated: a connection that has a place must get one, also in a burst, and allocation on
 * demand makes a new one 40 % more expensive, a masqueraded one by another 10 %. */
MAP_OF(connections, BPF_MAP_TYPE_HASH, 0, struct connection_key, struct connection,
       CONNECTIONS(MIN_ASSURED));
MAP_OF(aliases, BPF_MAP_TYPE_HASH, 0, struct connection_key, struct alias,
       CONNECTIONS(MIN_ASSURED));
ARRAY_OF(half_open, BPF_MAP_TYPE_ARRAY, struct half_open, MIN_HALF_OPEN + 1);
/* Mappable memory is page-aligned, so each place is a cache line. */
MAP_OF(assured, BPF_MAP_TYPE_ARRAY, BPF_F_MMAPABLE, __u32, struct assured, MIN_ASSURED + 1);
ARRAY_OF(shares, BPF_MAP_TYPE_ARRAY, struct share, MAX_SLOTS);
ARRAY_OF(usage, BPF_MAP_TYPE_ARRAY, struct usage, 1);
ARRAY_OF(client_shares, BPF_MAP_TYPE_ARRAY, __u32, SHARES);
ARRAY_OF(port_shares, BPF_MAP_TYPE_ARRAY, struct port_share, SHARES);
MAP_OF(socket_flows, BPF_MAP_TYPE_SK_STORAGE, BPF_F_NO_PREALLOC, __u32, struct socket_flows, 0);
ARRAY_OF(fragments, BPF_MAP_TYPE_ARRAY, struct fragment_row, FRAGMENT_ROWS);
ARRAY_OF(held, BPF_MAP_TYPE_ARRAY, struct held_fragment, MAX_HELD);

/* Returns whether a bit of an ARRAY of words is set. */
#define BIT_IS_SET(map, number) \
	({ \
		__u32 word = (number) >> 6; \
		const __u64 *bits = bpf_map_lookup_elem(&map, &word); \
		bits && (*bits >> ((number)&63) & 1); \
	})
