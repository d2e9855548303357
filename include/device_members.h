/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * device_members.h - where the running kernel keeps what a network device has: MAC, qdiscs,
 * filters, its master, IPv6 addresses; the members of a packet that programs cannot see, and those
 * of a connection that conntrack tracks; and which of the kernel's functions programs may call.
 *
 * These types differ between kernels: the loader looks the members up in the kernel's BTF and
 * passes their offsets to the programs. If a member or the BTF is missing, `known` is 0 and the
 * programs do not look.
 */
#pragma once

/* X(name, type, member) */
#define DEVICE_MEMBERS(X) \
	X(skb_device, sk_buff, dev) \
	X(device_ifindex, net_device, ifindex) \
	X(device_net, net_device, nd_net) \
	X(device_address, net_device, dev_addr) \
	X(device_hash_entry, net_device, index_hlist) \
	X(device_qdisc, net_device, qdisc) \
	X(net_hash, net, dev_index_head) \
	X(qdisc_handle, Qdisc, handle) \
	X(hook_filters, mini_Qdisc, filter_list) \
	X(filter_next, tcf_proto, next) \
	X(filter_priority, tcf_proto, prio) \
	X(filter_classifier, tcf_proto, ops) \
	X(classifier_kind, tcf_proto_ops, kind)

/* Since Linux 6.6 tc and TCX share one hook. */
#define DEVICE_MEMBERS_TCX(X) \
	X(device_ingress, net_device, tcx_ingress) \
	X(device_egress, net_device, tcx_egress) \
	X(hook_parent, bpf_mprog_entry, parent) \
	X(hook_bundle, tcx_entry, bundle) \
	X(hook_mini_qdisc, tcx_entry, miniq)

#define DEVICE_MEMBERS_MINI_QDISC(X) \
	X(device_ingress, net_device, miniq_ingress) \
	X(device_egress, net_device, miniq_egress)

/* What changes when a device is cut off. The master is the first of the upper devices. */
#define DEVICE_MEMBERS_UPPER(X) \
	X(device_flags, net_device, flags) \
	X(device_upper, net_device, adj_list) \
	X(upper_list, netdev_adjacent, list) \
	X(upper_device, netdev_adjacent, dev)

/* Only on kernels with IPsec */
#define DEVICE_MEMBERS_XFRM(X) \
	X(net_xfrm, net, xfrm) \
	X(xfrm_policy_count, netns_xfrm, policy_count)

/* Only on kernels with conntrack */
#define DEVICE_MEMBERS_CONNTRACK(X) X(skb_conntrack, sk_buff, _nfct)

/* Only while nf_conntrack, which may be a module, is loaded */
#define DEVICE_MEMBERS_TRACKED(X) \
	X(tracked_status, nf_conn, status) \
	X(tracked_tuples, nf_conn, tuplehash) \
	X(tracked_tuple, nf_conntrack_tuple_hash, tuple) \
	X(tracked_protocol, nf_conn, proto) \
	X(tracked_tcp_state, ip_ct_tcp, state)

/* Only where conntrack has zones, whose first member, of 16 bits, is the number; the second one, by
 * which a zone can be asked, since Linux 6.11 */
#define DEVICE_MEMBERS_ZONE(X) \
	X(tracked_zone, nf_conn, zone) \
	X(zone_option, bpf_ct_opts, ct_zone_id)

/* Only on kernels with IPv6 built in */
#define DEVICE_MEMBERS_IPV6(X) \
	X(device_inet6, net_device, ip6_ptr) \
	X(inet6_addresses, inet6_dev, addr_list) \
	X(address_node, inet6_ifaddr, if_list) \
	X(address_bytes, inet6_ifaddr, addr)

/* What says that a route may depend on a packet's ports or protocol: a rule with one, or IPv4's
 * policy by which next hops are chosen; and what changes with any route, rule or address: the
 * kernel's own caches of routes go by it, but for IPv6 routes that were removed, which are counted.
 */
#define DEVICE_MEMBERS_ROUTES(X) \
	X(net_ipv4, net, ipv4) \
	X(net_ipv6, net, ipv6) \
	X(ipv4_port_rules, netns_ipv4, fib_rules_require_fldissect) \
	X(ipv6_port_rules, netns_ipv6, fib6_rules_require_fldissect) \
	X(ipv4_hash_policy, netns_ipv4, sysctl_fib_multipath_hash_policy) \
	X(ipv4_changes, netns_ipv4, rt_genid) \
	X(ipv6_changes, netns_ipv6, fib6_sernum) \
	X(ipv6_statistics, netns_ipv6, rt6_stats) \
	X(ipv6_routes, rt6_statistics, fib_rt_entries)

/* The same of its source: any rule that an administrator has made, or an IPv6 route with a source
 */
#define DEVICE_MEMBERS_SOURCES(X) \
	X(ipv4_rules, netns_ipv4, fib_has_custom_rules) \
	X(ipv6_rules, netns_ipv6, fib6_has_custom_rules) \
	X(ipv6_source_routes, netns_ipv6, fib6_routes_require_src)

/* What says that nftables' rules have changed: 6.12 does not have the member here. */
#define DEVICE_MEMBERS_RULES(X) \
	X(net_nftables, net, nft) \
	X(nftables_changes, netns_nftables, base_seq)

/* Who looks at packets at netfilter's hooks: of which kind, and at which place */
#define DEVICE_MEMBERS_HOOKS(X) \
	X(net_netfilter, net, nf) \
	X(hooks_ipv4, netns_nf, hooks_ipv4) \
	X(hooks_ipv6, netns_nf, hooks_ipv6) \
	X(hooks_count, nf_hook_entries, num_hook_entries) \
	X(hooks_first, nf_hook_entries, hooks) \
	X(hook_kind, nf_hook_ops, hook_ops_type) \
	X(hook_priority, nf_hook_ops, priority)

/* For how long conntrack keeps UDP connections, in the kernel's ticks: after the first packets, and
 * later. */
#define DEVICE_MEMBERS_TIMES(X) \
	X(net_conntrack, net, ct) \
	X(conntrack_protocols, netns_ct, nf_ct_proto) \
	X(conntrack_udp, nf_ip_net, udp) \
	X(udp_times, nf_udp_net, timeouts)

/* Where a packet's checksum is left to the kernel: what is not in __sk_buff. */
#define DEVICE_MEMBERS_CHECKSUM(X) \
	X(skb_csum_start, sk_buff, csum_start) \
	X(skb_csum_offset, sk_buff, csum_offset) \
	X(skb_network_header, sk_buff, network_header)

/* Functions of the kernel (kfuncs). A program calls each as a helper of a number that no kernel
 * has, without an `extern`, for which libbpf wants a kernel with BTF; the loader puts the function
 * in the place of that call. Without it, a constant has the verifier remove the call. */
#define KERNEL_FUNCTIONS(X) \
	X(cast, bpf_cast_to_kern_ctx)          /* since Linux 6.2 */ \
	X(cast_address, bpf_rdonly_cast)       /* since 6.2 */ \
	X(conntrack_lookup, bpf_skb_ct_lookup) /* since 5.18, of nf_conntrack, as the next one */ \
	X(conntrack_release, bpf_ct_release) \
	X(conntrack_set_timeout, bpf_ct_change_timeout) /* since 6.0 */

enum kernel_function {
#define X(name, function) KERNEL_FUNCTION_##name,
	KERNEL_FUNCTIONS(X)
#undef X
		KERNEL_FUNCTION_COUNT
};

#define KERNEL_FUNCTION_CALL(name) (0x6b736b00 + KERNEL_FUNCTION_##name)

struct device_layout {
	__u32 known;     /* 1: the offsets below are right */
	__u32 tcx;       /* 1: offsets of DEVICE_MEMBERS_TCX, else DEVICE_MEMBERS_MINI_QDISC */
	__u32 xfrm;      /* 1: offsets of DEVICE_MEMBERS_XFRM are right */
	__u32 conntrack; /* 1: the offset of DEVICE_MEMBERS_CONNTRACK is right */
	__u32 upper;     /* 1: offsets of DEVICE_MEMBERS_UPPER are right */
	__u32 ipv6;      /* 1: offsets of DEVICE_MEMBERS_IPV6 are right */
	__u32 routes;    /* 1: offsets of DEVICE_MEMBERS_ROUTES are right */
	__u32 sources;   /* 1: offsets of DEVICE_MEMBERS_SOURCES are right */
	__u32 hooks;     /* 1: offsets of DEVICE_MEMBERS_HOOKS are right */
	__u32 nat_without_hook; /* 1: tc or Open vSwitch may translate without netfilter's hooks */
	__u32 rules;            /* 1: offsets of DEVICE_MEMBERS_RULES are right */
	__u32 ticks; /* the kernel's, a second; 0: offsets of DEVICE_MEMBERS_TIMES are not right */
	__u32 checksum; /* 1: offsets of DEVICE_MEMBERS_CHECKSUM, and the two below, are right */
	__u32 skb_ip_summed;
	__u32 ip_summed_mask; /* its bits in that byte, which are all set in CHECKSUM_PARTIAL */
	__u32 cast;           /* 1: bpf_cast_to_kern_ctx() can be called */
	__u32 word; /* BTF id of a type of 64 bits, as which bpf_rdonly_cast() reads; 0: it cannot
		     */
	__u32 tracked; /* 1: offsets of DEVICE_MEMBERS_TRACKED are right, conntrack can be asked */
	__u32 our_priority; /* of our own filters */
#define X(name, type, member) __u32 name;
	DEVICE_MEMBERS(X)
	DEVICE_MEMBERS_TCX(X)
	DEVICE_MEMBERS_UPPER(X)
	DEVICE_MEMBERS_XFRM(X)
	DEVICE_MEMBERS_CONNTRACK(X)
	DEVICE_MEMBERS_TRACKED(X)
	DEVICE_MEMBERS_ZONE(X)
	DEVICE_MEMBERS_IPV6(X)
	DEVICE_MEMBERS_ROUTES(X)
	DEVICE_MEMBERS_SOURCES(X)
	DEVICE_MEMBERS_RULES(X)
	DEVICE_MEMBERS_HOOKS(X)
	DEVICE_MEMBERS_TIMES(X)
	DEVICE_MEMBERS_CHECKSUM(X)
#undef X
};
