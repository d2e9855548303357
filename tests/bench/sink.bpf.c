/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sink.bpf.c - counts the UDP packets that arrive at an interface, and drops, answers or passes
 * them.
 *
 * At tc ingress instead of XDP, because packets of bpf_redirect_peer() pass there too.
 */
#include "vmlinux.h"
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "arrived.h"
#include "sink.h"

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd
#define PROTOCOL_UDP 17
#define PASS 0
#define DROP 2

struct headers4 {
	struct ethhdr ethernet;
	struct iphdr ip;
	struct udphdr udp;
} __attribute__((packed));

struct headers6 {
	struct ethhdr ethernet;
	struct ipv6hdr ip;
	struct udphdr udp;
} __attribute__((packed));

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sink_settings);
} settings SEC(".maps");

#define EXCHANGE(a, b) \
	do { \
		__typeof__(a) kept = a; \
		a = b; \
		b = kept; \
	} while (0)

/* A macro, because members of packed structures must not have pointers. */
#define TURN_ROUND(headers) \
	do { \
		struct ethhdr old = (headers)->ethernet; \
\
		__builtin_memcpy((headers)->ethernet.h_dest, old.h_source, 6); \
		__builtin_memcpy((headers)->ethernet.h_source, old.h_dest, 6); \
		EXCHANGE((headers)->ip.saddr, (headers)->ip.daddr); \
		EXCHANGE((headers)->udp.source, (headers)->udp.dest); \
	} while (0)

/* Returns the destination port, 0 if it is no UDP packet. turn: swaps source and destination. */
static __be16 look_at_ipv4(struct headers4 *headers, const void *end, bool turn)
{
	__be16 port;

	if ((const void *)(headers + 1) > end || headers->ip.protocol != PROTOCOL_UDP)
		return 0;
	port = headers->udp.dest;
	if (turn)
		TURN_ROUND(headers);
	return port;
}

static __be16 look_at_ipv6(struct headers6 *headers, const void *end, bool turn)
{
	__be16 port;

	if ((const void *)(headers + 1) > end || headers->ip.nexthdr != PROTOCOL_UDP)
		return 0;
	port = headers->udp.dest;
	if (turn)
		TURN_ROUND(headers);
	return port;
}

static __be16 look_at(struct __sk_buff *skb, bool turn)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;

	if (skb->protocol == bpf_htons(ETHERTYPE_IPV4))
		return look_at_ipv4(data, end, turn);
	return skb->protocol == bpf_htons(ETHERTYPE_IPV6) ? look_at_ipv6(data, end, turn) : 0;
}

SEC("tc")
int sink(struct __sk_buff *skb)
{
	struct sink_settings *now;
	__u32 zero = 0;
	__u64 *count;
	__be16 port;

	now = bpf_map_lookup_elem(&settings, &zero);
	count = bpf_map_lookup_elem(&arrived, &zero);
	port = look_at(skb, false);
	if (!now || !count || !port || (now->port && port != bpf_htons(now->port)))
		return PASS;
	*count += 1;
	if (now->action != SINK_ANSWER)
		return now->action == SINK_PASS ? PASS : DROP;
	look_at(skb, true);
	return bpf_redirect(skb->ifindex, 0);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
