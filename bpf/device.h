/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * device.h - finds what packets that skip the IP stack would miss: a qdisc at a device's root,
 * filters at its hooks (the bandwidth plugin uses both), and the host's IPsec policies; whether a
 * container was cut off; and the IPv6 addresses of a device.
 *
 * No helper reports them, so the programs read the kernel's own structures (device_layout.h). What
 * cannot be read counts as absent: user space also looks, at ADD, CHECK and attach.
 */
#pragma once

#include "connection.h"
#include "device_layout.h"

#define DEVICE_HASH_BITS 8 /* NETDEV_HASHBITS: the same since Linux 2.6.22 */
#define MOST_DEVICES_IN_BUCKET 64
#define CLASSIFIER_BPF 0x62706600 /* "bpf" in memory order */
#define MOST_FILTERS 4            /* priorities at a hook: we use fewer */
#define IFF_UP 1
#define MOST_ADDRESSES 16 /* IPv6, of one device */

/* Returns the address of the device with this ifindex in the packet's namespace, or 0. */
GLOBAL_FUNCTION __u64 device_find(struct __sk_buff *skb, __u32 ifindex)
{
	__u64 device = device_read((__u64)skb, device_layout.skb_device), node;

	if ((__u32)device_read(device, device_layout.device_ifindex) == ifindex)
		return device;
	node = device_read(device, device_layout.device_net);
	node = device_read(node, device_layout.net_hash);
	node += (ifindex & ((1 << DEVICE_HASH_BITS) - 1)) * sizeof(void *);
	node = device_read(node, 0);
	for (int i = 0; node && i < MOST_DEVICES_IN_BUCKET; i++) {
		device = node - device_layout.device_hash_entry;
		if ((__u32)device_read(device, device_layout.device_ifindex) == ifindex)
			return device;
		node = device_read(node, 0);
	}
	return 0;
}

/* Returns the address of the packet's network namespace. */
INLINE __u64 device_net(struct __sk_buff *skb)
{
	return device_read(device_read((__u64)skb, device_layout.skb_device),
			   device_layout.device_net);
}

/* Returns the address of what the packet's namespace has for IPv4 or IPv6. */
INLINE __u64 device_namespace(struct __sk_buff *skb, bool ipv4)
{
	return device_net(skb) + (ipv4 ? device_layout.net_ipv4 : device_layout.net_ipv6);
}

/* Goes by priority and kind; only user space checks which BPF program it is. */
INLINE bool device_filter_is_ours(__u64 filter)
{
	__u64 classifier = device_read(filter, device_layout.filter_classifier);

	return (__u32)device_read(filter, device_layout.filter_priority) >> 16 ==
		       device_layout.our_priority &&
	       (__u32)device_read(classifier, device_layout.classifier_kind) ==
		       bpf_htonl(CLASSIFIER_BPF);
}

/* Returns where a hook that tc and TCX share has its filters. */
INLINE __u64 device_hook_filters(__u64 hook)
{
	return device_read(hook, device_layout.hook_parent) - device_layout.hook_bundle +
	       device_layout.hook_mini_qdisc;
}

/* Returns whether a hook has filters that are not ours. hook: the device's pointer for it. */
GLOBAL_FUNCTION bool device_has_filters(__u64 hook)
{
	__u64 filter;

	if (hook && device_layout.tcx)
		hook = device_read(device_hook_filters(hook), 0);
	if (!hook)
		return false;
	filter = device_read(hook, device_layout.hook_filters);
	for (int i = 0; filter && i < MOST_FILTERS; i++) {
		if (!device_filter_is_ours(filter))
			return true;
		filter = device_read(filter, device_layout.filter_next);
	}
	return filter != 0;
}

/* Returns whether packets must pass a qdisc or filter of the device. */
GLOBAL_FUNCTION bool device_is_watched(struct __sk_buff *skb, __u32 ifindex)
{
	__u64 device = device_find(skb, ifindex), qdisc;

	if (!device)
		return false;
	/* A device's default qdisc has the handle 0; tc gives a number to those it makes. */
	qdisc = device_read(device, device_layout.device_qdisc);
	if (qdisc && (__u32)device_read(qdisc, device_layout.qdisc_handle))
		return true;
	return device_has_filters(device_read(device, device_layout.device_ingress)) ||
	       device_has_filters(device_read(device, device_layout.device_egress));
}

/* Returns whether a container's veth is down, or not a port of the bridge that it was added to
 * (0: it is routed): what goes past the stack would reach it nevertheless. */
GLOBAL_FUNCTION bool device_is_cut_off(struct __sk_buff *skb, __u32 veth, __u32 bridge)
{
	__u64 device = device_find(skb, veth), upper;

	if (!device || !device_layout.upper)
		return false;
	if (!((__u32)device_read(device, device_layout.device_flags) & IFF_UP))
		return true;
	if (!bridge)
		return false;
	upper = device_read(device, device_layout.device_upper) - device_layout.upper_list;
	upper = device_read(upper, device_layout.upper_device);
	return (__u32)device_read(upper, device_layout.device_ifindex) != bridge;
}

/* Looks for IPsec policies for outgoing or forwarded packets: one read gets both counts, which
 * follow that of XFRM_POLICY_IN. */
GLOBAL_FUNCTION bool device_host_has_policies(struct __sk_buff *skb)
{
	return device_layout.xfrm &&
	       device_read(device_net(skb) + device_layout.net_xfrm,
			   device_layout.xfrm_policy_count + sizeof(__u32)) != 0;
}

/* Returns the number of rules that look at ports; where it cannot be read, one. */
INLINE __u32 device_host_port_rules(struct __sk_buff *skb, bool ipv4)
{
	if (!device_layout.known || !device_layout.routes)
		return 1;
	return device_read(device_namespace(skb, ipv4),
			   ipv4 ? device_layout.ipv4_port_rules : device_layout.ipv6_port_rules);
}

/* Returns whether a packet's ports or flow label decide about nothing but which of several next
 * hops it gets. IPv6 always looks at more than addresses. */
INLINE bool device_host_spreads_flows(struct __sk_buff *skb, bool ipv4)
{
	return !device_host_port_rules(skb, ipv4) &&
	       (!ipv4 ||
		(__u8)device_read(device_namespace(skb, true), device_layout.ipv4_hash_policy));
}

/* Returns whether the route of a packet may depend on its source. */
GLOBAL_FUNCTION bool device_host_routes_by_source(struct __sk_buff *skb, bool ipv4)
{
	__u64 net;

	if (!device_layout.known || !device_layout.routes || !device_layout.sources)
		return true;
	net = device_namespace(skb, ipv4);
	if (ipv4)
		return (__u8)device_read(net, device_layout.ipv4_rules);
	return (__u8)device_read(net, device_layout.ipv6_rules) ||
	       (__u32)device_read(net, device_layout.ipv6_source_routes);
}

/* Returns a number that is another one after any change to the host's routes, rules or addresses.
 * 0: it cannot be read, or rules look at ports. A bit of its own keeps the kernel's numbers, which
 * may be 0, from saying so. */
GLOBAL_FUNCTION __u64 device_host_routes(struct __sk_buff *skb, bool ipv4)
{
	__u64 net, entries;

	if (device_host_port_rules(skb, ipv4))
		return 0;
	net = device_namespace(skb, ipv4);
	if (ipv4)
		return 1ULL << 32 | (__u32)device_read(net, device_layout.ipv4_changes);
	entries = device_read(net, device_layout.ipv6_statistics);
	entries = device_read(entries, device_layout.ipv6_routes);
	return 1ULL << 63 | entries << 32 | (__u32)device_read(net, device_layout.ipv6_changes);
}

/* Returns a hash, of 24 bits, of device_host_routes() and of how often user space has forgotten an
 * interface: while it stays the same, so does where a packet leaves, and whether a program of ours
 * is there. 0: it cannot be read. */
INLINE __u32 device_ways_number(struct __sk_buff *skb, bool ipv4)
{
	__u64 routes = device_host_routes(skb, ipv4);

	return routes ? hash_mix(routes, SINGLE(meta)->interfaces_forgotten) >> 40 ?: 1 : 0;
}

/* Returns whether the packet's sender is an IPv6 address that the host has at this device.
 * bpf_fib_lookup() does not answer for link-local addresses. */
GLOBAL_FUNCTION bool device_has_sender(struct __sk_buff *skb, const struct packet *packet,
				       __u32 ifindex)
{
	__u64 list, node;

	if (!packet || !device_layout.known || !device_layout.ipv6)
		return false;
	list = device_read(device_find(skb, ifindex), device_layout.device_inet6);
	list += device_layout.inet6_addresses;
	node = device_read(list, 0);
	for (int i = 0; node && node != list && i < MOST_ADDRESSES; i++) {
		__u64 bytes = node - device_layout.address_node + device_layout.address_bytes;

		if (device_read(bytes, 0) == address_halves(packet->sender)[0] &&
		    device_read(bytes, sizeof(__u64)) == address_halves(packet->sender)[1])
			return true;
		node = device_read(node, 0);
	}
	return false;
}

/* A bridge whose MAC nobody has set takes the lowest one of its ports', so it gets another one when
 * a container comes or goes. Frames to the old one are for nobody. */
GLOBAL_FUNCTION int device_follow_bridge(struct __sk_buff *skb, __u32 veth)
{
	struct interface *port = bpf_map_lookup_elem(&interfaces, &veth);
	__u64 address, mac = 0, known = 0;
	struct slot *slot;
	__u32 number;

	if (!port || !device_layout.known)
		return 0;
	address = device_read(device_find(skb, port->bridge_ifindex), device_layout.device_address);
	__builtin_memcpy(&known, port->bridge_mac, ETH_ALEN);
	if (bpf_probe_read_kernel(&mac, ETH_ALEN, (void *)address) || !mac || mac == known)
		return 0;
	__builtin_memcpy(port->bridge_mac, &mac, ETH_ALEN);
	number = port->owner.slot;
	slot = bpf_map_lookup_elem(&slots, &number);
	if (slot && slot->live && slot->generation == port->owner.generation)
		__builtin_memcpy(slot->gateway_mac, &mac, ETH_ALEN);
	return 0;
}

/* Returns the slot of a container's veth, which may be that of `likely`, or NULL. */
INLINE struct slot *device_slot(const struct owner *likely, __u32 veth)
{
	const struct interface *interface;
	__u32 number = likely->slot;
	struct slot *slot = bpf_map_lookup_elem(&slots, &number);

	if (slot && slot->ifindex == veth)
		return slot;
	interface = bpf_map_lookup_elem(&interfaces, &veth);
	if (!interface)
		return NULL;
	number = interface->owner.slot;
	slot = bpf_map_lookup_elem(&slots, &number);
	return slot && slot->ifindex == veth ? slot : NULL;
}

/* Reads a veth's root qdisc and the first filter at its ingress. A filter behind the first one
 * changes neither: the check of the next second finds it. */
INLINE void device_see(struct __sk_buff *skb, __u32 veth, struct seen_pointer *seen)
{
	__u64 device = device_find(skb, veth);

	if (!device)
		return;
	seen[INWARDS].place = device + device_layout.device_qdisc;
	seen[OUTWARDS].place = device + device_layout.device_ingress;
	if (device_layout.tcx)
		seen[OUTWARDS].place = device_hook_filters(device_read(seen[OUTWARDS].place, 0));
	for (int way = 0; way < 2; way++)
		seen[way].value = device_read(seen[way].place, 0);
}

#define SEEN_NEVER 1 /* no pointer has this value */

/* Checks a container's veth and its bridge, once a second. */
GLOBAL_FUNCTION int device_check(struct __sk_buff *skb, __u32 veth)
{
	struct interface *interface = bpf_map_lookup_elem(&interfaces, &veth);
	__u32 now = clock_second(), bridge;
	struct seen_pointer seen[2] = {};
	struct slot *slot;

	if (!interface || interface->looked_at == now)
		return 0;
	bridge = interface->role == ROLE_PORT ? interface->bridge_ifindex : 0;
	interface->looked_at = now;
	slot = device_slot(&interface->owner, veth);
	device_see(skb, veth, seen); /* before it is examined */
	interface->watched = device_host_has_policies(skb) || device_is_watched(skb, veth) ||
			     (bridge && device_is_watched(skb, bridge)) ||
			     device_is_cut_off(skb, veth, bridge);
	if (interface->watched)
		seen[INWARDS].value = seen[OUTWARDS].value = SEEN_NEVER;
	if (slot)
		__builtin_memcpy(slot->passed, seen, sizeof(slot->passed));
	if (bridge)
		device_follow_bridge(skb, veth);
	return 0;
}

/* Returns whether a veth has nothing that has come since the last check: by one read for each
 * packet, since a limit of bandwidth must hold from its first packet on. likely: whose veth it may
 * be. 0 is no veth. */
INLINE bool device_is_as_seen(const struct owner *likely, __u32 veth, enum way way)
{
	const struct slot *slot = veth ? device_slot(likely, veth) : NULL;

	return !slot || !slot->passed[way].place ||
	       device_read(slot->passed[way].place, 0) == slot->passed[way].value;
}

/* Returns whether a packet may go past the qdiscs and filters of the veths by which it comes from a
 * container and goes to one. */
GLOBAL_FUNCTION bool device_lets_skip(const struct owner *likely, __u32 from, __u32 to)
{
	return likely && device_is_as_seen(likely, from, OUTWARDS) &&
	       device_is_as_seen(likely, to, INWARDS);
}
