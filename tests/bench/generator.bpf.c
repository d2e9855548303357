/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * generator.bpf.c - the next packet: one datagram of the next flow, round and round.
 *
 * The frame is recycled after its receivers have changed it: all of its headers are written
 * anew. Checksums are right, as they would come from a network.
 */
#include "vmlinux.h"
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "generator.h"

#define DROP 1

/* linux/bpf.h, which vmlinux.h here has only parts of */
struct xdp_md {
	__u32 data;
	__u32 data_end;
};

struct generator_plan plan; /* not const: the compiler would believe it zero */

static __u16 checksum(__u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return bpf_htons(~sum);
}

static void choose_flow(struct generator_headers *headers, __u32 flow)
{
	__u32 address = plan.base + flow / GENERATOR_PORTS;
	__u32 port = GENERATOR_FIRST_PORT + flow % GENERATOR_PORTS;
	__u32 words = (address >> 16) + (address & 0xffff);

	if (plan.to_many)
		headers->ip.daddr = bpf_htonl(address);
	else
		headers->ip.saddr = bpf_htonl(address);
	headers->ip.check = checksum(plan.ip_sum + words);
	headers->udp.source = bpf_htons(port);
	headers->udp.check = checksum(plan.udp_sum + words + port);
}

/* Whoever is called too early drops the frame, and will be called again at once. */
static int is_early(void)
{
	__u64 now;

	if (!plan.interval)
		return 0;
	now = bpf_ktime_get_ns();
	if (now < plan.next_time)
		return 1;
	/* What was missed is made up for, but not more than a few packets at once. */
	if (now - plan.next_time > 32 * plan.interval)
		plan.next_time = now;
	plan.next_time += plan.interval;
	return 0;
}

SEC("xdp")
int generate(struct xdp_md *context)
{
	struct generator_headers *headers = (void *)(long)context->data;
	__u32 next = plan.next;

	if ((void *)(headers + 1) > (void *)(long)context->data_end)
		return DROP;
	if ((plan.count && plan.sent >= plan.count) || is_early())
		return DROP;
	__builtin_memcpy(headers, &plan.headers, sizeof(*headers));
	choose_flow(headers, plan.first + next);
	plan.next = next + 1 < plan.flows ? next + 1 : 0;
	plan.sent++;
	return bpf_redirect(plan.ifindex, 0);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
