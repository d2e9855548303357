/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * counted.bpf.c - the programs with counters for their helper calls, for `programs --count`. A
 * function-like macro is not expanded if its name is in parentheses.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include "operations.h"

struct operations operations;

/* Arrays are known by the map's type; a map that is passed as void * is a hash. */
struct any_hash {
	int (*type)[BPF_MAP_TYPE_HASH];
};

#define TYPED(map) \
	_Generic((map), void *: (struct any_hash *)0, const void *: (struct any_hash *)0, default: (map))
#define IS_ARRAY(map) \
	(sizeof(*TYPED(map)->type) == sizeof(int[BPF_MAP_TYPE_ARRAY]) || \
	 sizeof(*TYPED(map)->type) == sizeof(int[BPF_MAP_TYPE_PERCPU_ARRAY]))

#define COUNTED(name) operations.name++
#define bpf_map_lookup_elem(map, key) \
	(IS_ARRAY(map) ? COUNTED(array) : COUNTED(hash), (bpf_map_lookup_elem)(map, key))
#define bpf_map_update_elem(map, key, value, flags) \
	(COUNTED(inserted), (bpf_map_update_elem)(map, key, value, flags))
#define bpf_map_delete_elem(map, key) (COUNTED(deleted), (bpf_map_delete_elem)(map, key))
#define bpf_fib_lookup(context, query, size, flags) \
	(COUNTED(fib), (bpf_fib_lookup)(context, query, size, flags))
#define bpf_sk_lookup_udp(context, tuple, size, netns, flags) \
	(COUNTED(socket), (bpf_sk_lookup_udp)(context, tuple, size, netns, flags))
#define bpf_skc_lookup_tcp(context, tuple, size, netns, flags) \
	(COUNTED(socket), (bpf_skc_lookup_tcp)(context, tuple, size, netns, flags))

#include "portmap.bpf.c"
