/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conntrack.h - what netfilter's connection tracking says of a packet.
 *
 * This host may have other NAT: kube-proxy, another plugin's masquerade, a VPN, Docker. A packet of
 * a connection that one of them translates is theirs in both directions, though its address and
 * port may be a mapping's, or a new connection's of a container. conntrack knows: it is asked once
 * for each connection that would begin here, and for each port that one would get; the answer is
 * not kept.
 *
 * An entry without translation says nothing. A client that asked before the container came has one,
 * and would never reach the container. So where nobody has ever translated (hooks.h) there is
 * nothing to ask: that spares each new connection what a look into a large table costs.
 *
 * conntrack tells about TCP and UDP (bpf_skb_ct_lookup), in its default zone. Where it cannot be
 * asked (device_layout.tracked), for the other protocols, and in other zones, host.h remembers what
 * it sees leave. The zone of a packet is not known before netfilter has seen it.
 */
#pragma once

#include "hooks.h"
#include "route.h"

/* struct bpf_ct_opts. What follows `zone` came with it; newer kernels accept the size without. */
struct conntrack_options {
	__s32 netns_id;
	__s32 error;
	__u8 protocol;
	__u8 direction; /* found: that of the tuple, enum ip_conntrack_dir */
	__u16 zone;
	__u8 reserved[4];
};
#define CONNTRACK_OPTIONS_WITHOUT_ZONE 12

static void *(*const conntrack_lookup)(struct __sk_buff *skb, struct bpf_sock_tuple *tuple,
				       __u32 tuple_size, struct conntrack_options *options,
				       __u32 options_size) = (void *)
	KERNEL_FUNCTION_CALL(conntrack_lookup);
static void (*const conntrack_release)(void *connection) = (void *)
	KERNEL_FUNCTION_CALL(conntrack_release);
static int (*const conntrack_set_timeout)(void *connection, __u32 milliseconds) = (void *)
	KERNEL_FUNCTION_CALL(conntrack_set_timeout);

/* Numbers of the kernel's interface to user space: enum ip_conntrack_status, ip_conntrack_info,
 * ip_conntrack_dir, tcp_conntrack */
#define CONNTRACK_SOURCE_NAT (1 << 4)      /* IPS_SRC_NAT */
#define CONNTRACK_DESTINATION_NAT (1 << 5) /* IPS_DST_NAT */
#define CONNTRACK_NAT (CONNTRACK_SOURCE_NAT | CONNTRACK_DESTINATION_NAT)
#define CONNTRACK_INFO 7ULL         /* the bits of it in skb->_nfct */
#define CONNTRACK_REPLY 3           /* IP_CT_ESTABLISHED_REPLY */
#define CONNTRACK_RELATED_REPLY 4   /* IP_CT_RELATED_REPLY: an ICMP error */
#define CONNTRACK_DIRECTION_REPLY 1 /* IP_CT_DIR_REPLY */
#define CONNTRACK_TCP_TIME_WAIT 7   /* TCP_CONNTRACK_TIME_WAIT */
#define CONNTRACK_TCP_CLOSE 8       /* TCP_CONNTRACK_CLOSE */

/* Returns whether conntrack can be asked about packets of this protocol. */
INLINE bool conntrack_tells_of(enum protocol protocol)
{
	return device_layout.tracked && (protocol == PROTOCOL_TCP || protocol == PROTOCOL_UDP);
}

/* Reads an entry. No map may be looked up here: conntrack_find() holds a reference, which
 * Linux 6.1's verifier sees leak where the program ends because a map has no entry. */
INLINE void conntrack_read(struct tracked *tracked, __u64 entry)
{
	tracked->status = device_read(entry, device_layout.tracked_status);
	tracked->tcp_state = device_read(entry + device_layout.tracked_protocol,
					 device_layout.tracked_tcp_state);
	entry += device_layout.tracked_tuples + device_layout.tracked_tuple;
	bpf_probe_read_kernel(tracked, offsetof(struct tracked, tcp_state), (void *)entry);
}

/* Returns the zone of an entry, 0 for the default one. */
INLINE __u16 conntrack_zone(__u64 entry)
{
	return device_layout.tracked_zone ? device_read(entry, device_layout.tracked_zone) : 0;
}

/* An address of the entry that was read */
INLINE void conntrack_address(const struct packet *packet, const __u8 *read, __u8 *address)
{
	if (packet->ipv4)
		address_from_ipv4(address, *(__be32 *)read);
	else
		address_copy(address, read);
}

/* Reads the entry of a tuple into scratch->tracked. False: there is none, or its connection is not
 * translated. ended: 0, or an entry that ends if it is the tuple's; false also if it is not. */
GLOBAL_FUNCTION bool conntrack_find(struct __sk_buff *skb, const struct tuple *tuple, __u64 ended)
{
	bool refused = false;
	struct tracked *tracked = &scratch_get()->tracked;
	struct conntrack_options options = {.netns_id = BPF_F_CURRENT_NETNS};
	struct bpf_sock_tuple query = {};
	void *entry;
	__u32 size;

	if (!tuple || !conntrack_tells_of(tuple->protocol) ||
	    !hooks_translate(skb, address_is_ipv4(tuple->source)))
		return false;
	options.protocol = tuple->protocol;
	size = socket_query(tuple, &query);
	if (ended && device_layout.zone_option)
		options.zone = conntrack_zone(ended);
	entry = conntrack_lookup(skb, &query, size, &options,
				 device_layout.zone_option ? sizeof(options)
							   : CONNTRACK_OPTIONS_WITHOUT_ZONE);
	if (!entry)
		return false;
	conntrack_read(tracked, (__u64)entry);
	if (ended)
		refused = (__u64)entry != ended || conntrack_set_timeout(entry, 0);
	conntrack_release(entry);
	tracked->direction = options.direction;
	return !refused && tracked->status & CONNTRACK_NAT;
}

/* The packet's entry, with enum ip_conntrack_info in its low bits, once netfilter has seen it: at a
 * bridge's ingress by br_netfilter, at lo's where a process of the host has sent it. */
INLINE __u64 conntrack_seen(struct __sk_buff *skb)
{
	return device_layout.conntrack ? MEMBER(__u64, skb, skb_conntrack) : 0;
}

/* Returns in which ways another NAT translates the connection of a packet that netfilter has seen.
 */
INLINE __u32 conntrack_ways(__u64 seen)
{
	if (!device_layout.tracked || !seen)
		return 0;
	return device_read(seen & ~CONNTRACK_INFO, device_layout.tracked_status) & CONNTRACK_NAT;
}

INLINE bool conntrack_is_answer(__u64 seen)
{
	__u64 info = seen & CONNTRACK_INFO;

	return info == CONNTRACK_REPLY || info == CONNTRACK_RELATED_REPLY;
}

/* Returns whether another NAT has given a packet its source. */
INLINE bool conntrack_gave_source(__u64 seen)
{
	return !conntrack_is_answer(seen) && conntrack_ways(seen) & CONNTRACK_SOURCE_NAT;
}

/* Returns whether an entry keeps a packet from beginning another connection. A SYN on one that has
 * ended begins another one for netfilter, too. UDP of a client that was translated before the
 * mapping came would never reach the container: portmap deletes such entries when it adds a
 * mapping. */
INLINE bool conntrack_keeps(const struct packet *packet)
{
	const struct tracked *tracked = &scratch_get()->tracked;

	if (packet->tuple.protocol == PROTOCOL_UDP)
		return tracked->direction == CONNTRACK_DIRECTION_REPLY;
	return !packet_begins_tcp(packet) || (tracked->tcp_state != CONNTRACK_TCP_TIME_WAIT &&
					      tracked->tcp_state != CONNTRACK_TCP_CLOSE);
}

/* Returns whether another NAT has given a packet at lo only another source: a rule masquerades all
 * that leaves, by lo too. */
INLINE bool conntrack_masquerades(struct __sk_buff *skb)
{
	__u64 seen = skb->ifindex == LOOPBACK_IFINDEX ? conntrack_seen(skb) : 0;

	return !conntrack_is_answer(seen) && conntrack_ways(seen) == CONNTRACK_SOURCE_NAT;
}

/* Returns whether a packet at ingress is of a connection that another NAT translates. What a rule
 * masquerades by lo has got its own source again (loopback.h). */
GLOBAL_FUNCTION bool conntrack_translates(struct __sk_buff *skb, const struct packet *packet)
{
	__u64 seen;

	if (!packet || !device_layout.tracked)
		return false;
	if (conntrack_masquerades(skb))
		return false;
	seen = conntrack_seen(skb);
	if (seen)
		return conntrack_ways(seen);
	return conntrack_find(skb, &packet->tuple, 0) && conntrack_keeps(packet);
}

/* Has conntrack forget the connection of a packet at lo that a rule masquerades.
 * scratch->tracked has what it was. */
INLINE bool conntrack_forget_masqueraded(struct __sk_buff *skb, const struct packet *packet)
{
	struct tuple *reply = &scratch_get()->reply;
	const struct tuple *tuple = &packet->tuple;

	address_copy(reply->source, tuple->destination);
	address_copy(reply->destination, tuple->source);
	reply->source_port = tuple->destination_port;
	reply->destination_port = tuple->source_port;
	reply->protocol = tuple->protocol;
	return conntrack_find(skb, reply, conntrack_seen(skb) & ~CONNTRACK_INFO);
}

/* Returns whether a packet that leaves the stack is an answer of such a connection, or an error
 * about one. Its destination has been translated back, its source may be a container's own. */
INLINE bool conntrack_has_translated_back(struct __sk_buff *skb)
{
	__u64 seen = conntrack_seen(skb);

	return conntrack_is_answer(seen) && conntrack_ways(seen);
}

/* Returns whether another NAT has changed the tuple of a packet that leaves the stack and is no
 * answer. scratch->tracked then has the one that it had before. */
INLINE bool conntrack_has_changed(struct __sk_buff *skb)
{
	struct tracked *tracked = &scratch_get()->tracked;
	__u64 seen = conntrack_seen(skb);

	if (conntrack_is_answer(seen) || !conntrack_ways(seen))
		return false;
	conntrack_read(tracked, seen & ~CONNTRACK_INFO);
	return true;
}

/* Returns whether a container's packet answers a client of a mapped port whose address another NAT
 * has changed, on the way from the mapping to this container. Where conntrack does not tell, it
 * answers what to_container has remembered. */
GLOBAL_FUNCTION bool conntrack_hides_client(struct __sk_buff *skb, const struct packet *packet)
{
	const struct tracked *tracked = &scratch_get()->tracked;
	struct connection_key *key = &scratch_get()->other;
	const struct connection *connection;
	enum flow_kind kind = FLOW_FOREIGN;

	if (!packet)
		return false;
	connection_key_of(&packet->tuple, INWARDS, key);
	if (conntrack_find(skb, &packet->tuple, 0)) {
		if (tracked->direction != CONNTRACK_DIRECTION_REPLY)
			return false;
		kind = FLOW_MAPPING;
		connection_key_of(&packet->tuple, OUTWARDS, key);
		conntrack_address(packet, tracked->client, key->outside);
		key->outside_port = bpf_ntohs(tracked->client_port);
	}
	connection = connection_find(key);
	return connection && connection->kind == kind;
}
