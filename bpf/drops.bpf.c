/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * drops.bpf.c - tells `bpf-portmap trace` which packets of containers and of mapped ports
 * the kernel drops, where and why. Loaded only while that runs.
 *
 * It sees what the kernel drops in all network namespaces, and lets through what may be ours by the
 * bitmaps of published ports and container addresses; user space decides. It looks up no map that
 * allocates its entries on demand: before Linux 6.1 the kernel prints a warning about such a
 * program.
 */
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include "portmap.h"
#include "endpoint.h"
#include "trace_event.h"

#define BPF_F_CURRENT_CPU 0xffffffffULL
#define DST_POINTER (~1UL) /* the lowest bit of _skb_refdst says whether it is counted */
#define TCP_FLAGS 13       /* their offset */

/* Where the kernel keeps these is found out when this is loaded. */
#define KERNEL_TYPE __attribute__((preserve_access_index))

struct net {
	__u64 net_cookie;
	struct {
		unsigned int inum;
	} ns;
} KERNEL_TYPE;

typedef struct {
	struct net *net;
} KERNEL_TYPE possible_net_t;

struct net_device {
	int ifindex;
	possible_net_t nd_net;
} KERNEL_TYPE;

struct dst_entry {
	struct net_device *dev;
} KERNEL_TYPE;

struct sock_common {
	possible_net_t skc_net;
} KERNEL_TYPE;

struct sock {
	struct sock_common __sk_common;
} KERNEL_TYPE;

struct sk_buff {
	struct net_device *dev;
	struct sock *sk;
	unsigned long _skb_refdst;
	unsigned int len;
	__be16 protocol;
	__u16 network_header;
	unsigned char *head;
} KERNEL_TYPE;

/* Of the host; set before this is loaded */
const volatile __u64 host_cookie = 0;
/* The filter's; 0, all zero: any */
const volatile __u8 wanted_protocol = 0;
const volatile __u64 wanted_address[2] = {};

MAP_OF(trace_events, BPF_MAP_TYPE_PERF_EVENT_ARRAY, 0, __u32, __u32, 0);
/* The other programs': while they do not tell how packets come, this does not tell how they end. */
volatile struct trace_settings trace_settings SEC(TRACE_SETTINGS);

/* Returns the network namespace, or NULL. A packet that a socket sends has no device at first. */
INLINE struct net *net_of(struct sk_buff *skb)
{
	struct net_device *device = BPF_CORE_READ(skb, dev);
	struct sock *socket = BPF_CORE_READ(skb, sk);

	if (device)
		return BPF_CORE_READ(device, nd_net.net);
	return socket ? BPF_CORE_READ(socket, __sk_common.skc_net.net) : NULL;
}

/* Returns where the next header is, or NULL. */
INLINE unsigned char *read_ipv4(unsigned char *at, struct trace_drop *drop)
{
	struct iphdr ip;

	if (bpf_probe_read_kernel(&ip, sizeof(ip), at) || ip.version != 4)
		return NULL;
	address_from_ipv4(drop->tuple.source, ip.saddr);
	address_from_ipv4(drop->tuple.destination, ip.daddr);
	drop->protocol = ip.protocol;
	return ip.frag_off & bpf_htons(0x1fff) ? NULL : at + ip.ihl * 4;
}

INLINE unsigned char *read_ipv6(unsigned char *at, struct trace_drop *drop)
{
	struct ipv6hdr ip __attribute__((aligned(8)));

	if (bpf_probe_read_kernel(&ip, sizeof(ip), at) || ip.version != 6)
		return NULL;
	address_copy(drop->tuple.source, (__u8 *)&ip.saddr);
	address_copy(drop->tuple.destination, (__u8 *)&ip.daddr);
	drop->protocol = ip.nexthdr;
	return at + sizeof(ip);
}

/* Extension headers are not walked: such a packet has no ports here. */
INLINE void read_packet(struct sk_buff *skb, struct trace_drop *drop)
{
	unsigned char *at = BPF_CORE_READ(skb, head) + BPF_CORE_READ(skb, network_header);
	__be16 protocol = BPF_CORE_READ(skb, protocol);
	__be16 ports[2];

	if (protocol == bpf_htons(ETH_P_IP))
		at = read_ipv4(at, drop);
	else
		at = protocol == bpf_htons(ETH_P_IPV6) ? read_ipv6(at, drop) : NULL;
	if (!at || !packet_protocol_has_ports(drop->protocol) ||
	    bpf_probe_read_kernel(ports, sizeof(ports), at))
		return;
	drop->tuple.source_port = bpf_ntohs(ports[0]);
	drop->tuple.destination_port = bpf_ntohs(ports[1]);
	if (drop->protocol == PROTOCOL_TCP)
		bpf_probe_read_kernel(&drop->tcp_flags, 1, at + TCP_FLAGS);
}

INLINE bool address_is_wanted(const __u8 *address)
{
	return (wanted_address[0] | wanted_address[1]) &&
	       address_halves(address)[0] == wanted_address[0] &&
	       address_halves(address)[1] == wanted_address[1];
}

INLINE bool may_be_wanted(const struct trace_drop *drop)
{
	const struct trace_tuple *tuple = &drop->tuple;

	if (address_is_unset(tuple->destination) ||
	    (wanted_protocol && wanted_protocol != drop->protocol))
		return false;
	if (endpoint_is_likely(tuple->source) || endpoint_is_likely(tuple->destination))
		return true;
	return !drop->in_container &&
	       (address_is_wanted(tuple->source) || address_is_wanted(tuple->destination) ||
		portmap_is_published(tuple->destination_port) ||
		portmap_is_published(tuple->source_port));
}

INLINE void read_devices(struct sk_buff *skb, struct trace_drop *drop)
{
	struct net_device *device = BPF_CORE_READ(skb, dev);
	struct dst_entry *route = (void *)(BPF_CORE_READ(skb, _skb_refdst) & DST_POINTER);

	if (device)
		drop->ifindex = BPF_CORE_READ(device, ifindex);
	if (route)
		device = BPF_CORE_READ(route, dev);
	if (route && device)
		drop->out_ifindex = BPF_CORE_READ(device, ifindex);
}

INLINE int tell(void *ctx, struct sk_buff *skb, __u64 location, __u32 reason)
{
	struct trace_drop drop = {.hook = TRACE_KERNEL, .location = location, .reason = reason};
	struct net *net = net_of(skb);

	if (!trace_settings.until || !net)
		return 0;
	drop.in_container = BPF_CORE_READ(net, net_cookie) != host_cookie;
	read_packet(skb, &drop);
	if (!may_be_wanted(&drop))
		return 0;
	drop.netns = BPF_CORE_READ(net, ns.inum);
	drop.time = bpf_ktime_get_ns();
	drop.length = BPF_CORE_READ(skb, len);
	read_devices(skb, &drop);
	bpf_perf_event_output(ctx, &trace_events, BPF_F_CURRENT_CPU, &drop, sizeof(drop));
	return 0;
}

SEC("raw_tp/kfree_skb")
int kfree_skb(__u64 *ctx)
{
	return tell(ctx, (void *)ctx[0], ctx[1], ctx[2]);
}

/* Before Linux 5.17 there is no third argument, and a program that reads it is refused. */
SEC("raw_tp/kfree_skb")
int kfree_skb_old(__u64 *ctx)
{
	return tell(ctx, (void *)ctx[0], ctx[1], 0);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
