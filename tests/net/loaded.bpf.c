/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * loaded.bpf.c - empties the arrays among our maps (loaded.c): 200,000 entries in a millisecond,
 * which would take user space 40.
 */
#include "maps.h"

#define UNUSED __attribute__((unused))
/* A lock may not be written. */
#define BEGIN(value) _Generic(*(value), struct fragment_row : 1, default : 0)
#define EMPTIES(map) \
	static long empty_##map(void *of UNUSED, __u32 *key UNUSED, typeof(map.value) value, \
				void *context UNUSED) \
	{ \
		volatile __u32 *words = (void *)value; \
\
		for (__u32 i = BEGIN(value); i < sizeof(*value) / sizeof(*words); i++) \
			words[i] = 0; \
		return 0; \
	}

/* clang-format off */
#define ARRAYS(X) \
	X(slots) X(published_ports) X(noticed) X(endpoint_addresses) X(half_open) X(assured) \
	X(shares) X(usage) X(client_shares) X(port_shares) X(external_ports) X(fragments) X(held)
/* clang-format on */

ARRAYS(EMPTIES)

SEC("syscall")
int empty_arrays(void *context UNUSED)
{
#define X(map) bpf_for_each_map_elem(&map, empty_##map, NULL, 0);
	ARRAYS(X)
#undef X
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
