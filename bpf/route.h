/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* route.h - queries to the kernel's routing and socket tables. */
#pragma once

#include "device.h"
#include "scratch.h"

enum route {
	ROUTE_LOCAL,     /* to this host, or without a route */
	ROUTE_FORWARDED, /* leaves through the interface found */
	ROUTE_DISABLED,  /* forwarding is off where the packet arrived */
	ROUTE_REFUSED,   /* blackhole, unreachable, prohibit */
};

INLINE void route_query_addresses(struct bpf_fib_lookup *query, const __u8 *source,
				  const __u8 *destination)
{
	if (address_is_ipv4(source)) {
		query->family = AF_INET;
		query->ipv4_src = address_to_ipv4(source);
		query->ipv4_dst = address_to_ipv4(destination);
	} else {
		query->family = AF_INET6;
		__builtin_memcpy(query->ipv6_src, source, 16);
		__builtin_memcpy(query->ipv6_dst, destination, 16);
	}
}

INLINE void route_query(struct bpf_fib_lookup *query, const struct packet *packet, __u32 ifindex)
{
	const struct tuple *tuple = &packet->tuple;

	__builtin_memset(query, 0, sizeof(*query));
	query->ifindex = ifindex;
	query->l4_protocol = tuple->protocol;
	query->sport = bpf_htons(tuple->source_port);
	query->dport = bpf_htons(tuple->destination_port);
	route_query_addresses(query, packet->sender, tuple->destination);
}

/* The neighbour need not be resolved yet. */
INLINE bool route_is_found(long result)
{
	return result == BPF_FIB_LKUP_RET_SUCCESS || result == BPF_FIB_LKUP_RET_NO_NEIGH;
}

/* A MAC that is unset is not known. */
INLINE bool route_same_next_hop(const __u8 *one, const __u8 *other)
{
	const __u16 *a = (const __u16 *)one, *b = (const __u16 *)other;

	return !(a[0] | a[1] | a[2]) || !(b[0] | b[1] | b[2]) ||
	       !((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]));
}

/* Of two next hops this misses one in 65,536 times, of four in 100: such a flow stays in the stack.
 */
#define NEXT_HOPS_TRIED 16

INLINE bool route_leads_to(const struct bpf_fib_lookup *answer, long result,
			   const struct next_hop *wanted)
{
	return route_is_found(result) && answer->ifindex == wanted->ifindex &&
	       (result == BPF_FIB_LKUP_RET_NO_NEIGH ||
		route_same_next_hop(answer->dmac, wanted->destination));
}

/* Asks routing as bpf_fib_lookup() does. Where a route has several next hops, and a hash of ports
 * or of the flow label chooses one, the stack takes the packet's hash for it (seal.h), or its flow
 * label and whether it is a fragment, which a query does not have. So the answer is the next hop
 * that is wanted, because the stack has chosen it, if a query with some source port and label leads
 * there. Nothing is wanted where wanted->ifindex is 0. */
GLOBAL_FUNCTION int route_ask(struct __sk_buff *skb, struct bpf_fib_lookup *query,
			      const struct next_hop *wanted)
{
	struct bpf_fib_lookup *asked = &scratch_get()->asked, *tried = &scratch_get()->tried;
	int result, first;

	if (!query || !wanted)
		return BPF_FIB_LKUP_RET_NOT_FWDED;
	__builtin_memcpy(asked, query, sizeof(*asked));
	first = bpf_fib_lookup(skb, query, sizeof(*query), 0);
	if (!wanted->ifindex || route_leads_to(query, first, wanted) ||
	    !device_host_spreads_flows(skb, asked->family == AF_INET))
		return first;
	for (int i = 1; i < NEXT_HOPS_TRIED; i++) {
		__builtin_memcpy(tried, asked, sizeof(*tried));
		tried->sport += i;
		if (tried->family == AF_INET6)
			tried->flowinfo = bpf_htonl(i);
		result = bpf_fib_lookup(skb, tried, sizeof(*tried), 0);
		if (route_leads_to(tried, result, wanted)) {
			__builtin_memcpy(query, tried, sizeof(*query));
			return result;
		}
	}
	return first;
}

/* Sends the packet out by the interface `out`, to this answer's next hop if that is there; else the
 * kernel looks for one. Where a route has several next hops, it may take the gateway of another
 * interface (IPv6: ip6_pol_route() prefers the interface, but does not insist on it): no neighbour
 * at this one has that address, and the packet is lost. */
INLINE int route_redirect(const struct bpf_fib_lookup *answer, bool found, __u32 out)
{
	struct bpf_redir_neigh next_hop = {};

	if (!found || answer->ifindex != out)
		return bpf_redirect_neigh(out, NULL, 0, 0);
	next_hop.nh_family = answer->family;
	__builtin_memcpy(next_hop.ipv6_nh, answer->ipv6_dst, sizeof(next_hop.ipv6_nh));
	return bpf_redirect_neigh(out, &next_hop, sizeof(next_hop), 0);
}

/* Asks routing for a next hop at the interface `out`, and sends the packet there. */
GLOBAL_FUNCTION int route_ask_and_redirect(struct __sk_buff *skb, struct bpf_fib_lookup *query,
					   __u32 out)
{
	const struct next_hop wanted = {.ifindex = out};

	if (!query)
		return TC_ACT_SHOT;
	return route_redirect(query, route_is_found(route_ask(skb, query, &wanted)), out);
}

/* Returns where a packet that arrives at ifindex would go. *out: where it would leave. */
GLOBAL_FUNCTION enum route route_of(struct __sk_buff *skb, const struct packet *packet,
				    __u32 ifindex, __u32 *out)
{
	struct bpf_fib_lookup query;

	if (!packet || !out)
		return ROUTE_REFUSED;
	route_query(&query, packet, ifindex);
	switch (bpf_fib_lookup(skb, &query, sizeof(query), 0)) {
	case BPF_FIB_LKUP_RET_NOT_FWDED: /* RTN_LOCAL, broadcast, or no route at all */
		return ROUTE_LOCAL;
	case BPF_FIB_LKUP_RET_FWD_DISABLED:
		return ROUTE_DISABLED;
	case BPF_FIB_LKUP_RET_SUCCESS:
	case BPF_FIB_LKUP_RET_NO_NEIGH:    /* the stack will resolve it */
	case BPF_FIB_LKUP_RET_FRAG_NEEDED: /* the stack will report it */
	case BPF_FIB_LKUP_RET_UNSUPP_LWT:
		*out = query.ifindex;
		return ROUTE_FORWARDED;
	default:
		return ROUTE_REFUSED;
	}
}

/* An interface that came up since the last ADD has no to_uplink: what must be translated must not
 * leave there. A route may move between two packets, so routing is asked for each. */
GLOBAL_FUNCTION bool leaves_unclassified(struct __sk_buff *skb, const struct packet *packet,
					 __u32 ifindex)
{
	__u32 out = 0;

	return packet && route_of(skb, packet, ifindex, &out) == ROUTE_FORWARDED &&
	       !bpf_map_lookup_elem(&interfaces, &out);
}

/* Returns whether routing would send an answer back through the interface where the packet has
 * arrived. A container without our programs may forge an address that is outside of its bridge. */
GLOBAL_FUNCTION bool route_leads_back(struct __sk_buff *skb, const struct packet *packet)
{
	struct bpf_fib_lookup query;
	long result;

	if (!packet)
		return true;
	/* As lo's: a question for the output of one interface finds any of its routes. */
	route_query(&query, packet, LOOPBACK_IFINDEX);
	route_query_addresses(&query, packet->tuple.destination, packet->sender);
	result = bpf_fib_lookup(skb, &query, sizeof(query), 0);
	if (result == BPF_FIB_LKUP_RET_FWD_DISABLED)
		return true; /* routing was not asked */
	return route_is_found(result) && query.ifindex == skb->ifindex;
}

#define MTU_SEGMENTS 1 /* BPF_MTU_CHK_SEGS: checks each segment of a GSO packet */

/* Where the stack did not choose the interface, it would send no error. */
INLINE bool route_fits(struct __sk_buff *skb, const struct packet *packet, __u32 ifindex)
{
	__u32 length = skb->gso_size ? 0 : packet->end - packet->l3_offset;

	return !ifindex ||
	       bpf_check_mtu(skb, ifindex, &length, 0, skb->gso_size ? MTU_SEGMENTS : 0) <= 0;
}

/* Returns the interface that routing chooses for the packet's new source (`ip rule from`), or 0. */
GLOBAL_FUNCTION __u32 route_by_source(struct __sk_buff *skb, const struct packet *packet,
				      const struct address *source)
{
	struct bpf_fib_lookup query;

	if (!packet || !source)
		return 0;
	route_query(&query, packet, skb->ingress_ifindex);
	route_query_addresses(&query, source->bytes, packet->tuple.destination);
	return route_is_found(bpf_fib_lookup(skb, &query, sizeof(query), 0)) ? query.ifindex : 0;
}

/* Gets the MAC that the stack has given the packet, or zeros. */
INLINE void route_given_mac(struct __sk_buff *skb, const struct packet *packet, __u8 *mac)
{
	if (!packet->l3_offset || !packet_load_header(skb, 0, mac, ETH_ALEN))
		__builtin_memset(mac, 0, ETH_ALEN);
}

/* Notes where the stack sends the packet, to compare that with a path. */
INLINE void route_note_way(struct __sk_buff *skb, const struct packet *packet,
			   struct connection *connection)
{
	connection->out_ifindex = skb->ifindex;
	route_given_mac(skb, packet, connection->out_destination);
}

/* Returns whether a forwarded packet leaves the stack as a query for its tuple says. If not, the
 * stack has routed it by more: a mark, or the type of service. */
GLOBAL_FUNCTION bool route_is_plain(struct __sk_buff *skb, const struct packet *packet)
{
	struct bpf_fib_lookup query;
	struct next_hop seen = {.ifindex = skb->ifindex};
	int result;

	if (!packet)
		return true;
	route_given_mac(skb, packet, seen.destination);
	route_query(&query, packet, skb->ingress_ifindex);
	result = route_ask(skb, &query, &seen);
	return !route_is_found(result) || route_leads_to(&query, result, &seen);
}

#ifdef FALLBACKS
#define ROUTE_FIND_SOURCE (1U << 31) /* refused, like BPF_FIB_LOOKUP_SRC before 6.7 */
#else
#define ROUTE_FIND_SOURCE BPF_FIB_LOOKUP_SRC
#endif

/* Finds the source that routing would now choose for a host socket at this interface. */
GLOBAL_FUNCTION bool route_source(struct __sk_buff *skb, const struct packet *packet, __u32 ifindex,
				  struct address *address)
{
	struct bpf_fib_lookup query;
	struct interface *interface;

	if (!packet || !address)
		return false;
	route_query(&query, packet, ifindex);
	__builtin_memset(query.ipv6_src, 0, sizeof(query.ipv6_src));
	query.sport = 0;
	if (bpf_fib_lookup(skb, &query, sizeof(query),
			   BPF_FIB_LOOKUP_OUTPUT | BPF_FIB_LOOKUP_SKIP_NEIGH | ROUTE_FIND_SOURCE) ==
	    BPF_FIB_LKUP_RET_SUCCESS) {
		__builtin_memcpy(address->bytes, query.ipv6_src, 16);
		if (packet->ipv4)
			address_from_ipv4(address->bytes, query.ipv4_src);
		/* 0: none; nor does an IPv6 source begin with 32 zero bits */
		if (query.ipv4_src && !address_is_ipv6_link_local(address->bytes))
			return true;
	}
	/* Before 6.7 the kernel does not know the flag: use ADD's record. */
	interface = bpf_map_lookup_elem(&interfaces, &ifindex);
	if (!interface)
		return false;
	address_copy(address->bytes, packet->ipv4 ? interface->address4 : interface->address6);
	return !address_is_unset(address->bytes);
}

/* What route_source() has found for a server, valid in the same tick of the clock: 1 to 10 ms */
struct route_answer {
	__u64 tick;
	__u8 destination[16];
	__u8 source[16];
	__u32 ifindex;
	__u16 port;
	enum protocol protocol;
	__u8 reserved;
} __attribute__((aligned(8)));

#define ROUTE_ANSWERS 64

ARRAY_OF(route_answers, BPF_MAP_TYPE_PERCPU_ARRAY, struct route_answer, ROUTE_ANSWERS);

/* Does the same for a connection that begins. Many may begin at once to the same server (DNS), and
 * for each the kernel looks through all IPv6 addresses of the host. */
GLOBAL_FUNCTION bool route_source_to_begin(struct __sk_buff *skb, const struct packet *packet,
					   __u32 ifindex, struct address *address)
{
	__u64 tick = bpf_ktime_get_coarse_ns();
	struct route_answer *answer;
	const struct tuple *tuple;
	__u32 place;

	if (!packet || !address)
		return false;
	tuple = &packet->tuple;
	place = hash_mix(0, address_halves(tuple->destination)[1]) % ROUTE_ANSWERS;
	answer = bpf_map_lookup_elem(&route_answers, &place);
	if (!answer)
		return false;
	if (answer->tick == tick && answer->ifindex == ifindex &&
	    answer->port == tuple->destination_port && answer->protocol == tuple->protocol &&
	    address_equal(answer->destination, tuple->destination)) {
		address_copy(address->bytes, answer->source);
		return true;
	}
	if (!route_source(skb, packet, ifindex, address))
		return false;
	answer->tick = tick;
	answer->ifindex = ifindex;
	answer->port = tuple->destination_port;
	answer->protocol = tuple->protocol;
	address_copy(answer->destination, tuple->destination);
	address_copy(answer->source, address->bytes);
	return true;
}

/* An address that route_is_to_host() has found to be the host's, valid in the same second */
struct host_answer {
	__u8 address[16];
	__u32 ifindex;
	__u32 second;
} __attribute__((aligned(8)));

#define HOST_ANSWERS 16

ARRAY_OF(host_answers, BPF_MAP_TYPE_PERCPU_ARRAY, struct host_answer, HOST_ANSWERS);

/* Routing says the same of an address of this host and one without a route: then the record of ADD,
 * CHECK and attach decides. ifindex: an interface that forwards. */
GLOBAL_FUNCTION bool route_is_to_host(struct __sk_buff *skb, const struct packet *packet,
				      __u32 ifindex, const struct address *address)
{
	struct host_answer *answer;
	struct bpf_fib_lookup query;
	struct endpoint_key key;
	__u32 place;

	if (!packet || !address)
		return true;
	place = address_hash(address_halves(address->bytes)[0], address_halves(address->bytes)[1]) %
		HOST_ANSWERS;
	answer = bpf_map_lookup_elem(&host_answers, &place);
	if (!answer || (answer->second == clock_second() && answer->ifindex == ifindex &&
			address_equal(answer->address, address->bytes)))
		return true;
	route_query(&query, packet, ifindex);
	route_query_addresses(&query, address->bytes, address->bytes);
	switch (bpf_fib_lookup(skb, &query, sizeof(query), 0)) {
	case BPF_FIB_LKUP_RET_FWD_DISABLED: /* routing was not asked */
		return true;
	case BPF_FIB_LKUP_RET_NOT_FWDED:
		break;
	default:
		return false;
	}
	address_copy(key.address, address->bytes);
	if (!bpf_map_lookup_elem(&host_addresses, &key))
		return false;
	address_copy(answer->address, address->bytes);
	answer->ifindex = ifindex;
	answer->second = clock_second();
	return true;
}

enum socket_found {
	SOCKET_NONE,
	SOCKET_UNCONNECTED, /* a TCP listener, or a UDP socket of either kind */
	SOCKET_LINGERING,   /* in TIME_WAIT, was connected to the packet's sender */
	SOCKET_CONNECTED,   /* to the packet's sender */
};

/* Returns the size of the query. */
INLINE __u32 socket_query(const struct tuple *tuple, struct bpf_sock_tuple *query)
{
	if (address_is_ipv4(tuple->source)) {
		query->ipv4.saddr = address_to_ipv4(tuple->source);
		query->ipv4.daddr = address_to_ipv4(tuple->destination);
		query->ipv4.sport = bpf_htons(tuple->source_port);
		query->ipv4.dport = bpf_htons(tuple->destination_port);
		return sizeof(query->ipv4);
	}
	__builtin_memcpy(query->ipv6.saddr, tuple->source, 16);
	__builtin_memcpy(query->ipv6.daddr, tuple->destination, 16);
	query->ipv6.sport = bpf_htons(tuple->source_port);
	query->ipv6.dport = bpf_htons(tuple->destination_port);
	return sizeof(query->ipv6);
}

/* Returns which socket of this host would get a packet with this tuple. */
GLOBAL_FUNCTION enum socket_found socket_find(struct __sk_buff *skb, const struct tuple *tuple)
{
	struct bpf_sock_tuple query = {};
	enum socket_found found;
	struct bpf_sock *socket;
	__u32 size;

	if (!tuple)
		return SOCKET_NONE;
	size = socket_query(tuple, &query);
	/* Two calls: the verifier allows one pointer type at each. */
	if (tuple->protocol == PROTOCOL_TCP) {
		socket = bpf_skc_lookup_tcp(skb, &query, size, BPF_F_CURRENT_NETNS, 0);
		if (!socket)
			return SOCKET_NONE;
		found = socket->state == BPF_TCP_LISTEN      ? SOCKET_UNCONNECTED
			: socket->state == BPF_TCP_TIME_WAIT ? SOCKET_LINGERING
							     : SOCKET_CONNECTED;
		bpf_sk_release(socket);
		return found;
	}
	if (tuple->protocol != PROTOCOL_UDP)
		return SOCKET_NONE;
	socket = bpf_sk_lookup_udp(skb, &query, size, BPF_F_CURRENT_NETNS, 0);
	if (!socket)
		return SOCKET_NONE;
	bpf_sk_release(socket);
	return SOCKET_UNCONNECTED;
}
