/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rewrite.h - addresses, ports, hop limit and MACs of a packet. Only this file and
 * icmp_error_rewrite.h write packet bytes.
 *
 * Transport checksums are changed by the kernel's helpers, which know the state of the skb's
 * checksum (PARTIAL, COMPLETE, ...). All else is written in place if it is in the linear part.
 *
 * With BPF_F_PSEUDO_HDR, bpf_l4_csum_replace() also adjusts a CHECKSUM_COMPLETE sum for the
 * address, as though an IPv4 header checksum cancelled it. IPv6 has none (fixed by BPF_F_IPV6,
 * since 6.16): BPF_F_RECOMPUTE_CSUM, or bpf_csum_update(), which change only a COMPLETE sum,
 * correct it.
 *
 * The outer checksum of a tunnel whose inner one is left to the device (CHECKSUM_PARTIAL) is
 * complete, and no helper knows that: bpf_l4_csum_replace() takes it for the one that the device
 * will write. So it is changed here, but in a packet that will be cut into segments (GSO): that one
 * has a sum over the pseudo-header alone, as the helper expects.
 *
 * SCTP's CRC32c covers no address, and nothing in it cancels a COMPLETE sum, which must be
 * updated with all that is written.
 *
 * An ICMP error's own checksum covers the quoted packet and is updated with every single write. So
 * it does not matter which of the quoted checksums are present, or cover each other.
 */
#pragma once

#include "device_layout.h"
#include "packet.h"
#include "sctp.h"

#define PACKET_HOST 0
#define IPV4_TIME_TO_LIVE 8
#define IPV4_CHECKSUM 10
#define IPV4_SOURCE 12
#define IPV4_DESTINATION 16
#define IPV6_HOP_LIMIT 7
#define IPV6_SOURCE 8
#define IPV6_DESTINATION 24
#define SOURCE_PORT 0
#define DESTINATION_PORT 2
#define ICMP_CHECKSUM 2
#define ICMP_IDENTIFIER 4

struct rewrite {
	struct __sk_buff *skb;
	const struct packet *packet;
	__u32 checksum;     /* offset of the transport checksum */
	__u64 flags;        /* for bpf_l4_csum_replace() */
	bool pseudo_header; /* the checksum covers the addresses */
	bool complete;      /* though the packet's inner one is left to the device */
};

INLINE bool rewrite_checksum_covers_addresses(enum protocol protocol)
{
	return protocol == PROTOCOL_TCP || packet_protocol_is_udp(protocol) ||
	       protocol == PROTOCOL_ICMPV6;
}

INLINE __u32 rewrite_checksum_field(enum protocol protocol)
{
	switch (protocol) {
	case PROTOCOL_TCP:
		return offsetof(struct tcphdr, check);
	case PROTOCOL_UDP:
	case PROTOCOL_UDPLITE:
		return offsetof(struct udphdr, check);
	case PROTOCOL_SCTP:
		return offsetof(struct sctp_header, checksum);
	default:
		return ICMP_CHECKSUM;
	}
}

/* Returns the checksum (RFC 1624) of 16-bit words that have changed by `difference` in sum. */
INLINE __u16 rewrite_sum(__u16 checksum, __u64 difference)
{
	__u64 sum = (__u16)~checksum + difference;

	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

/* Returns whether a tunnel's checksum is complete, while another one is left to the device. */
INLINE bool rewrite_is_tunnel(const struct rewrite *to)
{
	__u16 start, offset;

	return packet_protocol_is_udp(to->packet->tuple.protocol) && to->pseudo_header &&
	       device_writes_checksum(to->skb, &start, &offset) &&
	       start != (__u16)(to->packet->l4_offset - to->packet->l3_offset) &&
	       !to->skb->gso_size;
}

/* Changes the transport checksum for bytes that change from old to new, of `size`, or, if that is
 * 0, whose sum changes by `new`. */
INLINE long rewrite_checksum(const struct rewrite *to, __u32 old, __u32 new, __u64 flags)
{
	__u16 checksum;

	if (!to->complete)
		return bpf_l4_csum_replace(to->skb, to->checksum, old, new, to->flags | flags);
	if (!packet_load(to->skb, to->checksum, &checksum, sizeof(checksum)))
		return -1;
	checksum = rewrite_sum(checksum, (__u64)(__u16)~old + new) ?: 0xffff;
	return bpf_skb_store_bytes(to->skb, to->checksum, &checksum, sizeof(checksum), 0);
}

/* Returns the change of a sum over the address, folded to 32 bits. */
INLINE __u32 rewrite_difference(bool ipv4, const __u8 *old_address, const __u8 *new_address)
{
	const __u32 *old = (const __u32 *)address_halves(old_address);
	const __u32 *new = (const __u32 *)address_halves(new_address);
	__u64 sum = (__u64)(__u32)~old[3] + new[3];

	if (!ipv4)
		for (int i = 0; i < 3; i++)
			sum += (__u64)(__u32)~old[i] + new[i];
	sum = (sum & 0xffffffff) + (sum >> 32);
	return sum + (sum >> 32);
}

/* Rewrites a field of the IP header. IPv4's header checksum cancels the change, so a COMPLETE sum
 * stays valid; over IPv6 it must be updated. */
INLINE long rewrite_ip(const struct rewrite *to, __u32 field, const void *new, __u32 size,
		       __u32 difference)
{
	struct __sk_buff *skb = to->skb;
	__u32 l3_offset = to->packet->l3_offset;
	bool ipv4 = to->packet->ipv4;
	__u32 end = field + size; /* clang 16 reads `ipv4` twice: two values to the verifier */
	void *ip = packet_linear(skb, l3_offset, end > IPV4_SOURCE ? end : IPV4_SOURCE);
	__u16 *checksum;

	if (!ip) {
		if (ipv4 && bpf_l3_csum_replace(skb, l3_offset + IPV4_CHECKSUM, 0, difference, 0))
			return -1;
		return bpf_skb_store_bytes(skb, l3_offset + field, new, size,
					   ipv4 ? 0 : BPF_F_RECOMPUTE_CSUM);
	}
	/* Not byte by byte */
	__builtin_memcpy(__builtin_assume_aligned(ip + field, 4), __builtin_assume_aligned(new, 4),
			 size);
	checksum = ip + IPV4_CHECKSUM;
	if (ipv4)
		*checksum = rewrite_sum(*checksum, difference);
	else
		bpf_csum_update(skb, difference); /* fails if the sum is not COMPLETE */
	return 0;
}

INLINE long rewrite_address(const struct rewrite *to, const __u8 *old, bool source, const __u8 *new)
{
	const struct packet *packet = to->packet;
	__u32 difference;

	if (address_equal(old, new))
		return 0;
	difference = rewrite_difference(packet->ipv4, old, new);
	if (to->pseudo_header && rewrite_checksum(to, 0, difference, BPF_F_PSEUDO_HDR))
		return -1;
	if (packet->ipv4)
		return rewrite_ip(to, source ? IPV4_SOURCE : IPV4_DESTINATION, new + 12, 4,
				  difference);
	return rewrite_ip(to, source ? IPV6_SOURCE : IPV6_DESTINATION, new, 16, difference);
}

INLINE long rewrite_port(const struct rewrite *to, __u16 old_port, __u16 new_port, __u32 field)
{
	__u32 offset = to->packet->l4_offset + field;
	__be16 old = bpf_htons(old_port);
	__be16 new = bpf_htons(new_port);
	__be16 *linear;
	long error;

	if (old == new)
		return 0;
	/* The transport checksum cancels the change in a COMPLETE sum; without one that is updated.
	 */
	if (to->packet->no_checksum)
		return bpf_skb_store_bytes(to->skb, offset, &new, sizeof(new),
					   BPF_F_RECOMPUTE_CSUM);
	error = rewrite_checksum(to, old, new, sizeof(new));
	linear = packet_linear(to->skb, offset, sizeof(new));
	if (!linear)
		return error ?: bpf_skb_store_bytes(to->skb, offset, &new, sizeof(new), 0);
	*linear = new;
	return error;
}

INLINE __u32 rewrite_ports_word(__u16 source, __u16 destination)
{
	return bpf_htons(source) | (__u32)bpf_htons(destination) << 16;
}

INLINE long rewrite_sctp_ports(const struct rewrite *to, __u16 source, __u16 destination)
{
	const struct packet *packet = to->packet;
	const struct tuple *tuple = &packet->tuple;
	__u32 ports = rewrite_ports_word(source, destination);
	__u32 change = ports ^ rewrite_ports_word(tuple->source_port, tuple->destination_port);
	__u32 old, new;

	if (!change)
		return 0;
	if (!packet_load(to->skb, to->checksum, &old, sizeof(old)))
		return -1;
	new = sctp_checksum(old, change, packet->end - packet->l4_offset);
	if (new != old &&
	    bpf_skb_store_bytes(to->skb, to->checksum, &new, sizeof(new), BPF_F_RECOMPUTE_CSUM))
		return -1;
	return bpf_skb_store_bytes(to->skb, packet->l4_offset, &ports, sizeof(ports),
				   BPF_F_RECOMPUTE_CSUM);
}

INLINE long rewrite_ports(const struct rewrite *to, __u16 source, __u16 destination)
{
	const struct tuple *tuple = &to->packet->tuple;
	long error;

	if (!packet_protocol_has_ports(tuple->protocol))
		return to->packet->echo_reply
			       ? rewrite_port(to, tuple->destination_port, destination,
					      ICMP_IDENTIFIER)
			       : rewrite_port(to, tuple->source_port, source, ICMP_IDENTIFIER);
	if (tuple->protocol == PROTOCOL_SCTP)
		return rewrite_sctp_ports(to, source, destination);
	error = rewrite_port(to, tuple->source_port, source, SOURCE_PORT);
	return error ?: rewrite_port(to, tuple->destination_port, destination, DESTINATION_PORT);
}

GLOBAL_FUNCTION int rewrite_packet(struct __sk_buff *skb, const struct packet *packet,
				   const struct translation *translation)
{
	struct rewrite to = {.skb = skb, .packet = packet};
	const struct tuple *tuple;
	long error;

	if (!packet || !translation)
		return -1;
	tuple = &packet->tuple;
	to.checksum = packet->l4_offset + rewrite_checksum_field(tuple->protocol);
	/* A later fragment has no checksum, and its ports are 0 before and after. */
	to.pseudo_header = rewrite_checksum_covers_addresses(tuple->protocol) &&
			   packet->fragment != LATER_FRAGMENT && !packet->no_checksum;
	if (packet_protocol_is_udp(tuple->protocol))
		to.flags = BPF_F_MARK_MANGLED_0; /* 0, "none", stays 0, and none becomes 0 */
	to.complete = rewrite_is_tunnel(&to);
	if (tuple->direction == DIRECTION_IN) {
		error = rewrite_address(&to, tuple->destination, false, translation->address);
		error = error ?: rewrite_ports(&to, translation->peer_port, translation->port);
	} else {
		error = rewrite_address(&to, tuple->source, true, translation->address);
		error = error ?: rewrite_ports(&to, translation->port, translation->peer_port);
	}
	return error ? -1 : 0;
}

/* Replaces only the packet's own destination, also of an ICMP error. */
GLOBAL_FUNCTION int rewrite_destination(struct __sk_buff *skb, const struct packet *packet,
					const struct address *destination)
{
	struct rewrite to = {.skb = skb, .packet = packet};
	enum protocol protocol;

	if (!packet || !destination)
		return -1;
	protocol = packet->tuple.protocol;
	if (packet->error)
		protocol = packet->ipv4 ? PROTOCOL_ICMP : PROTOCOL_ICMPV6;
	to.checksum = packet->l4_offset + rewrite_checksum_field(protocol);
	to.pseudo_header = rewrite_checksum_covers_addresses(protocol) &&
			   packet->fragment != LATER_FRAGMENT && !packet->no_checksum;
	if (packet_protocol_is_udp(protocol))
		to.flags = BPF_F_MARK_MANGLED_0;
	to.complete = !packet->error && rewrite_is_tunnel(&to);
	return rewrite_address(&to, packet->tuple.destination, false, destination->bytes) ? -1 : 0;
}

/* In its 16-bit word the time to live is the high byte, the hop limit the low one. */
INLINE long rewrite_hop_limit(struct __sk_buff *skb, const struct packet *packet)
{
	const struct rewrite to = {.skb = skb, .packet = packet};
	__u8 new = packet->hop_limit - 1;

	if (packet->ipv4)
		return rewrite_ip(&to, IPV4_TIME_TO_LIVE, &new, 1, (__u16)~bpf_htons(0x100));
	return rewrite_ip(&to, IPV6_HOP_LIMIT, &new, 1, (__u16)~bpf_htons(1));
}

/* No checksum covers the MACs; a COMPLETE sum begins behind them. */
INLINE long rewrite_macs(struct __sk_buff *skb, const __u8 *macs)
{
	__u32 *frame = packet_linear(skb, 0, ETH_HLEN);
	const __u32 *new = __builtin_assume_aligned(macs, 4);

	if (!frame)
		return bpf_skb_store_bytes(skb, 0, macs, 2 * ETH_ALEN, 0);
	for (int i = 0; i < 3; i++)
		frame[i] = new[i];
	return 0;
}

/* bpf_redirect_peer() does this itself since 6.15. A frame for the bridge that arrived on one of
 * its ports is PACKET_OTHERHOST, which the container would drop. */
INLINE void rewrite_for_container(struct __sk_buff *skb)
{
	skb->mark = 0;
	if (skb->pkt_type != PACKET_HOST)
		bpf_skb_change_type(skb, PACKET_HOST);
}

/* bpf_redirect_neigh() drops a packet without an Ethernet header. */
INLINE long rewrite_make_room_for_link_header(struct __sk_buff *skb, const struct packet *packet)
{
	return packet->l3_offset ? 0 : bpf_skb_change_head(skb, ETH_HLEN, 0);
}

/* Replaces the IP packet by another fragment of its datagram. */
INLINE long rewrite_whole(struct __sk_buff *skb, __u32 l3_offset, const __u8 *bytes, __u32 length)
{
	long error = bpf_skb_change_tail(skb, l3_offset + length, 0);

	return error ?: bpf_skb_store_bytes(skb, l3_offset, bytes, length, BPF_F_RECOMPUTE_CSUM);
}

/* With the bridge's own MAC, a frame that would be switched goes to the IP stack. */
INLINE long rewrite_destination_mac(struct __sk_buff *skb, const __u8 *mac)
{
	__u8 copy[8] = {};

	__builtin_memcpy(copy, mac, ETH_ALEN);
	return bpf_skb_store_bytes(skb, 0, copy, ETH_ALEN, 0);
}
