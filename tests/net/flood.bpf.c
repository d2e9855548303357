/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * flood.bpf.c - builds one packet of a flood, a SYN or a datagram with a random source.
 *
 * For each random field another field of the same checksum has the complement, so the checksum
 * that user space has computed stays right. The kernel reuses the frame after the receiver has
 * changed it, so the program writes all of it.
 */
#include "vmlinux.h"
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "flood.h"

/* From linux/bpf.h; the vmlinux.h here has only parts of it. */
struct xdp_md {
	__u32 data;
	__u32 data_end;
};

struct flood_plan plan; /* not const, because the compiler would assume that it is zero */

static void choose_source(struct flood_headers *headers, __u32 random)
{
	__u32 high = FLOOD_SOURCES >> 16 | (random >> 16 & 0x3f), low = random & 0xffff;
	__u32 sum = high + low;

	headers->ip.saddr = bpf_htonl(high << 16 | low);
	sum = (sum & 0xffff) + (sum >> 16);
	headers->ip.id = bpf_htons(~sum);
	headers->tcp.source = bpf_htons(~low);
	headers->tcp.seq = bpf_htonl(~high << 16);
}

SEC("xdp")
int flood(struct xdp_md *context)
{
	struct flood_headers *headers = (void *)(long)context->data;
	__u32 random = bpf_get_prandom_u32();

	if ((void *)(headers + 1) > (void *)(long)context->data_end)
		return 0;
	__builtin_memcpy(headers, &plan.headers, sizeof(*headers));
	if (!plan.own_source) {
		choose_source(headers, random);
	} else {
		headers->tcp.source = bpf_htons(random);
		headers->tcp.seq = bpf_htonl(~random & 0xffff);
	}
	if (plan.headers.ip.protocol == FLOOD_UDP) {
		headers->tcp.seq = bpf_htonl(FLOOD_DATAGRAM << 16); /* length, no checksum */
	}
	return bpf_redirect(plan.ifindex, 0);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
