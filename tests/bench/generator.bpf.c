/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * generator.bpf.c - writes a datagram of the next flow, in turn.
 *
 * The kernel recycles the frame, which its receivers may have changed: so all headers are written
 * anew, with right checksums, as from a network.
 */
#include "vmlinux.h"
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "arrived.h"
#include "generator.h"

#define DROP 1
#define SINKS_CPU 1       /* where the host forwards, and packets arrive */
#define ON_THEIR_WAY 192  /* packets at most: a veth has room for 256 */
#define BATCH 64          /* of the kernel, which sends so many at once */
#define LONGEST_WAIT 4096 /* readings of the clock: what has not arrived by then is lost */

/* From linux/bpf.h, because the vmlinux.h here is not complete. */
struct xdp_md {
	__u32 data;
	__u32 data_end;
};

struct generator_plan plan; /* not const, because the compiler would assume that it is zero */

static __u16 checksum(__u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff ? 0xffff : bpf_htons(~sum); /* 0 means no checksum (RFC 768) */
}

static __u32 flow_address(__u32 flow)
{
	return plan.base + flow / GENERATOR_PORTS;
}

static __u32 flow_port(__u32 flow)
{
	return GENERATOR_FIRST_PORT + flow % GENERATOR_PORTS;
}

static __u32 address_sum(__u32 flow)
{
	return (flow_address(flow) >> 16) + (flow_address(flow) & 0xffff);
}

static bool write_ipv4(struct xdp_md *context, __u32 flow)
{
	struct generator_headers4 *headers = (void *)(long)context->data;

	if ((void *)(headers + 1) > (void *)(long)context->data_end)
		return false;
	__builtin_memcpy(headers, &plan.headers4, sizeof(*headers));
	if (plan.to_many)
		headers->ip.daddr = bpf_htonl(flow_address(flow));
	else
		headers->ip.saddr = bpf_htonl(flow_address(flow));
	headers->ip.check = checksum(plan.ip_sum + address_sum(flow));
	headers->udp.source = bpf_htons(flow_port(flow));
	headers->udp.check = checksum(plan.udp_sum + address_sum(flow) + flow_port(flow));
	return true;
}

static bool write_ipv6(struct xdp_md *context, __u32 flow)
{
	struct generator_headers6 *headers = (void *)(long)context->data;

	if ((void *)(headers + 1) > (void *)(long)context->data_end)
		return false;
	__builtin_memcpy(headers, &plan.headers6, sizeof(*headers));
	if (plan.to_many)
		headers->ip.daddr.in6_u.u6_addr32[3] = bpf_htonl(flow_address(flow));
	else
		headers->ip.saddr.in6_u.u6_addr32[3] = bpf_htonl(flow_address(flow));
	headers->udp.source = bpf_htons(flow_port(flow));
	headers->udp.check = checksum(plan.udp_sum + address_sum(flow) + flow_port(flow));
	return true;
}

/* A call that is too early drops the frame, and the kernel calls again at once. */
static bool is_early(void)
{
	__u64 now;

	if (!plan.interval)
		return false;
	now = bpf_ktime_get_ns();
	if (now < plan.next_time)
		return true;
	/* After a delay a few packets are sent at once, not all that were missed. */
	if (now - plan.next_time > 32 * plan.interval)
		plan.next_time = now;
	plan.next_time += plan.interval;
	return false;
}

/* Returns where the sink counts what has arrived there, or NULL: there is no second CPU. */
static const volatile __u64 *arrivals(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_percpu_elem(&arrived, &zero, SINKS_CPU);
}

/* Waits until the veth has room for what the kernel sends at once. A packet that finds none there,
 * or that this program drops, would be freed here, under a lock that the host needs to free its
 * own: the quicker the host, the more that would slow it down. The program looks at the sink's
 * count only at every 16th turn of the loop, because each look takes the count's cache line from
 * the CPU that counts; the first look is no wait. */
static void wait_for_room(void)
{
	const volatile __u64 *count = arrivals();

	if (!count)
		return;
	if (!plan.sent)
		plan.arrived_before = *count;
	for (int i = 0; plan.sent + BATCH > plan.room && i < LONGEST_WAIT; i++) {
		plan.waited += i == 1;
		if (i % 16)
			bpf_ktime_get_ns();
		else
			plan.room = *count - plan.arrived_before + ON_THEIR_WAY;
	}
	if (plan.sent + BATCH > plan.room) { /* all that is on its way counts as lost */
		plan.arrived_before = *count - plan.sent;
		plan.room = plan.sent + ON_THEIR_WAY;
	}
}

/* In a burst each flow sends one packet, as soon as there is room, so that none is lost on the way.
 * The burst is over when all have arrived. */
static bool burst_waits(void)
{
	__u64 now = bpf_ktime_get_ns(), sent = plan.sent - plan.sent_before, here;
	const volatile __u64 *count = arrivals();

	if (!count)
		return true;
	here = *count;
	if (!plan.begun) {
		if (now < plan.next_time || plan.bursts >= GENERATOR_BURSTS)
			return true;
		plan.begun = now;
		plan.next_time = now + plan.every;
		plan.sent_before = plan.sent;
		plan.arrived_before = here;
		return false;
	}
	here -= plan.arrived_before;
	if (sent < plan.flows)
		return sent >= here + ON_THEIR_WAY;
	if (here >= sent && plan.bursts < GENERATOR_BURSTS) {
		plan.took[plan.bursts] = now - plan.begun;
		plan.begun = 0;
		plan.bursts++;
	}
	return true;
}

static bool waits(void)
{
	if (plan.paced_by_sink)
		wait_for_room();
	return plan.every ? burst_waits() : is_early();
}

SEC("xdp")
int generate(struct xdp_md *context)
{
	__u32 next = plan.next, flow = plan.first + next;

	if ((plan.count && plan.sent >= plan.count) || waits())
		return DROP;
	if (!(plan.ipv6 ? write_ipv6(context, flow) : write_ipv4(context, flow)))
		return DROP;
	plan.next = next + 1 < plan.flows ? next + 1 : 0;
	plan.sent++;
	return bpf_redirect(plan.ifindex, 0);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
