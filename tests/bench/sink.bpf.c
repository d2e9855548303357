/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sink.bpf.c - counts the UDP packets that arrive at an interface, and drops, answers or passes
 * them.
 *
 * At tc ingress, and not XDP: what bpf_redirect_peer hands over comes by here too.
 */
#include "vmlinux.h"
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "sink.h"

#define ETHERTYPE_IPV4 0x0800
#define PROTOCOL_UDP 17
#define PASS 0
#define DROP 2

struct headers {
	struct ethhdr ethernet;
	struct iphdr ip;
	struct udphdr udp;
} __attribute__((packed));

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sink_settings);
} settings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} arrived SEC(".maps");

static void turn_round(struct headers *headers)
{
	struct headers old = *headers;

	__builtin_memcpy(headers->ethernet.h_dest, old.ethernet.h_source, 6);
	__builtin_memcpy(headers->ethernet.h_source, old.ethernet.h_dest, 6);
	headers->ip.saddr = old.ip.daddr;
	headers->ip.daddr = old.ip.saddr;
	headers->udp.source = old.udp.dest;
	headers->udp.dest = old.udp.source;
}

SEC("tc")
int sink(struct __sk_buff *skb)
{
	struct headers *headers = (void *)(long)skb->data;
	struct sink_settings *now;
	__u32 zero = 0;
	__u64 *count;

	if ((void *)(headers + 1) > (void *)(long)skb->data_end ||
	    headers->ethernet.h_proto != bpf_htons(ETHERTYPE_IPV4) ||
	    headers->ip.protocol != PROTOCOL_UDP)
		return PASS;
	now = bpf_map_lookup_elem(&settings, &zero);
	count = bpf_map_lookup_elem(&arrived, &zero);
	if (!now || !count || (now->port && headers->udp.dest != bpf_htons(now->port)))
		return PASS;
	*count += 1;
	if (now->action != SINK_ANSWER)
		return now->action == SINK_PASS ? PASS : DROP;
	turn_round(headers);
	return bpf_redirect(skb->ifindex, 0);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
