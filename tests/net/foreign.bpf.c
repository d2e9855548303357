/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * foreign.bpf.c - programs that stand for another software's (tcx.c).
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#define UNUSED __attribute__((unused))
#define STATES 6
#define QUERY 0 /* BPF_CSUM_LEVEL_QUERY */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, STATES);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

const volatile int answer; /* of the program to whoever calls it */

static int count(__u32 number)
{
	__u64 *found = bpf_map_lookup_elem(&counts, &number);

	if (found)
		__sync_fetch_and_add(found, 1);
	return answer;
}

/* Counts its calls. tcx.c makes it a program of any type. */
SEC("tc")
int somebody_elses(void *context UNUSED)
{
	return count(0);
}

/* Counts packets by the state of their checksums (ip_summed), as far as a program can tell it:
 * complete, unnecessary, other, and the same for GSO packets. Which others are NONE and which
 * PARTIAL it cannot tell; a GSO packet is PARTIAL. */
SEC("tc")
int sums(struct __sk_buff *packet)
{
	__u32 state = packet->gso_size ? STATES / 2 : 0;

	if (bpf_csum_update(packet, 0) < 0) /* succeeds only if COMPLETE */
		state += bpf_csum_level(packet, QUERY) < 0 ? 2 : 1;
	return count(state);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
