/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rewrite.h - the only writer of packet bytes.
 *
 * Transport checksums are changed by the kernel's helpers, which know what state the
 * skb's checksum is in (PARTIAL, COMPLETE, ...). The rest of a header is written where it lies,
 * if that is in the linear part; the kernel has seen to it that nobody else has a share in
 * that. One of the helpers needs care: with
 * BPF_F_PSEUDO_HDR bpf_l4_csum_replace() also adjusts a CHECKSUM_COMPLETE sum
 * for the address, as if an IPv4 header checksum were to cancel it. IPv6 has
 * none (fixed by BPF_F_IPV6, since 6.16). Storing the IPv6 address with
 * BPF_F_RECOMPUTE_CSUM, or bpf_csum_update(), puts the sum right on every kernel, for
 * they touch nothing but a COMPLETE sum.
 *
 * SCTP has no part in that: its CRC32c covers no address, and nothing in it cancels a
 * COMPLETE sum, which must follow what is written. A sender whose interface is to compute
 * the CRC (any veth; the kernel does at the last moment what the card cannot) leaves the
 * field 0, and programs are not told: 0 stays 0, anything else is changed. One packet in
 * 2^32 has a CRC that really is 0, is taken for such a one, and lost.
 */
#ifndef BPF_PORTMAP_REWRITE_H
#define BPF_PORTMAP_REWRITE_H

#include "crc32c.h"
#include "flow.h"

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
#define TCP_CHECKSUM 16
#define UDP_CHECKSUM 6
#define ICMP_CHECKSUM 2
#define SCTP_CHECKSUM 8
#define IPV4_TOTAL_LENGTH 2
#define IPV6_PAYLOAD_LENGTH 4
#define IPV6_HEADER_SIZE 40
#define ICMP_IDENTIFIER 4

struct rewrite {
	struct __sk_buff *skb;
	const struct packet *packet;
	__u32 checksum;     /* offset of the transport checksum */
	__u64 flags;        /* for bpf_l4_csum_replace() */
	bool pseudo_header; /* the checksum covers the addresses */
};

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a CRC32c is read as it lies there");

static __always_inline bool rewrite_is_icmp(const struct packet *packet)
{
	return packet->tuple.protocol == PROTOCOL_ICMP || packet->tuple.protocol == PROTOCOL_ICMPV6;
}

static __always_inline __u32 rewrite_checksum_offset(const struct packet *packet)
{
	switch (packet->tuple.protocol) {
	case PROTOCOL_TCP:
		return packet->l4_offset + TCP_CHECKSUM;
	case PROTOCOL_UDP:
		return packet->l4_offset + UDP_CHECKSUM;
	case PROTOCOL_SCTP:
		return packet->l4_offset + SCTP_CHECKSUM;
	default:
		return packet->l4_offset + ICMP_CHECKSUM;
	}
}

/* RFC 1624: a sum of 16-bit words, of which some have changed by so much. */
static __always_inline __u16 rewrite_sum(__u16 checksum, __u64 difference)
{
	__u64 sum = (__u16)~checksum + difference;

	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

/* The header's own checksum cancels the change of address, so a COMPLETE sum stays right. */
static __always_inline long rewrite_ipv4_header(struct __sk_buff *skb, __u32 l3_offset, __be32 old,
						__be32 new, __u32 field)
{
	void *ip = packet_linear(skb, l3_offset, sizeof(struct iphdr));
	long error;

	if (ip) {
		__u16 *checksum = ip + IPV4_CHECKSUM;

		*checksum = rewrite_sum(*checksum, (__u64)(__u32)~old + new);
		*(__be32 *)(ip + field) = new;
		return 0;
	}
	error = bpf_l3_csum_replace(skb, l3_offset + IPV4_CHECKSUM, old, new, sizeof(new));
	return error ?: bpf_skb_store_bytes(skb, l3_offset + field, &new, sizeof(new), 0);
}

static __always_inline long rewrite_ipv4(const struct rewrite *to, const __u8 *old_address,
					 const __u8 *new_address, __u32 field)
{
	__be32 old = address_to_ipv4(old_address);
	__be32 new = address_to_ipv4(new_address);
	long error = 0;

	if (to->pseudo_header)
		error = bpf_l4_csum_replace(to->skb, to->checksum, old, new,
					    to->flags | BPF_F_PSEUDO_HDR | sizeof(new));
	return error ?: rewrite_ipv4_header(to->skb, to->packet->l3_offset, old, new, field);
}

/* What a sum over the address changes by, folded to 32 bits. */
static __always_inline __u32 rewrite_ipv6_difference(const __u8 *old_address,
						     const __u8 *new_address)
{
	const __u32 *old = (const __u32 *)address_halves((__u8 *)old_address);
	const __u32 *new = (const __u32 *)address_halves((__u8 *)new_address);
	__u64 sum = 0;

	for (int i = 0; i < 4; i++)
		sum += (__u64)(__u32)~old[i] + new[i];
	sum = (sum & 0xffffffff) + (sum >> 32);
	return sum + (sum >> 32);
}

/* A COMPLETE sum follows what is written. */
static __always_inline long rewrite_ipv6_header(struct __sk_buff *skb, __u32 offset,
						const __u8 *new_address, __u32 difference)
{
	__u64 *address = packet_linear(skb, offset, 16);

	if (!address)
		return bpf_skb_store_bytes(skb, offset, new_address, 16, BPF_F_RECOMPUTE_CSUM);
	address[0] = address_halves((__u8 *)new_address)[0];
	address[1] = address_halves((__u8 *)new_address)[1];
	bpf_csum_update(skb, difference); /* refuses where there is no such sum */
	return 0;
}

static __always_inline long rewrite_ipv6(const struct rewrite *to, const __u8 *old_address,
					 const __u8 *new_address, __u32 field)
{
	__u32 difference = rewrite_ipv6_difference(old_address, new_address);
	long error = 0;

	if (to->pseudo_header)
		error = bpf_l4_csum_replace(to->skb, to->checksum, 0, difference,
					    to->flags | BPF_F_PSEUDO_HDR);
	return error
		       ?: rewrite_ipv6_header(to->skb, to->packet->l3_offset + field, new_address,
					      difference);
}

static __always_inline long rewrite_address(const struct rewrite *to, const __u8 *old_address,
					    const __u8 *new_address, bool source)
{
	if (address_equal(old_address, new_address))
		return 0;
	if (to->packet->ipv4)
		return rewrite_ipv4(to, old_address, new_address,
				    source ? IPV4_SOURCE : IPV4_DESTINATION);
	return rewrite_ipv6(to, old_address, new_address, source ? IPV6_SOURCE : IPV6_DESTINATION);
}

static __always_inline long rewrite_port(const struct rewrite *to, __u16 old_port, __u16 new_port,
					 __u32 field)
{
	__u32 offset = to->packet->l4_offset + field;
	__be16 old = bpf_htons(old_port);
	__be16 new = bpf_htons(new_port);
	__be16 *linear;
	long error;

	if (old == new)
		return 0;
	/* A CHECKSUM_COMPLETE sum stays right because the transport checksum changes
	 * the other way; where there is none, the sum must follow. */
	if (to->packet->no_checksum)
		return bpf_skb_store_bytes(to->skb, offset, &new, sizeof(new),
					   BPF_F_RECOMPUTE_CSUM);
	error = bpf_l4_csum_replace(to->skb, to->checksum, old, new, to->flags | sizeof(new));
	linear = packet_linear(to->skb, offset, sizeof(new));
	if (!linear)
		return error ?: bpf_skb_store_bytes(to->skb, offset, &new, sizeof(new), 0);
	*linear = new;
	return error;
}

/* Four bytes from the wire, both ports, as the CRC32c sees them. */
static __always_inline __u32 rewrite_ports_word(__u16 source, __u16 destination)
{
	return bpf_htons(source) | (__u32)bpf_htons(destination) << 16;
}

/* The CRC32c of an SCTP packet, at its offset, of `length` bytes whose ports change so.
 * False: it stays as it is. */
static __always_inline bool rewrite_sctp_checksum(__u32 *checksum, __u32 change, __u32 length)
{
	if (*checksum == 0)
		return false;
	*checksum ^= crc32c_change(change, length);
	return true;
}

static __always_inline long rewrite_sctp_ports(const struct rewrite *to, __u16 source,
					       __u16 destination)
{
	const struct packet *packet = to->packet;
	__u32 new = rewrite_ports_word(source, destination);
	__u32 change =
		new ^ rewrite_ports_word(packet->tuple.source_port, packet->tuple.destination_port);
	__u32 checksum;

	if (!change)
		return 0;
	if (!packet_load(to->skb, to->checksum, &checksum, sizeof(checksum)))
		return -1;
	if (rewrite_sctp_checksum(&checksum, change, packet->end - packet->l4_offset) &&
	    bpf_skb_store_bytes(to->skb, to->checksum, &checksum, sizeof(checksum),
				BPF_F_RECOMPUTE_CSUM))
		return -1;
	return bpf_skb_store_bytes(to->skb, packet->l4_offset, &new, sizeof(new),
				   BPF_F_RECOMPUTE_CSUM);
}

/* The echo identifier stands in one place, whoever's port it is. */
static __always_inline long rewrite_ports(const struct rewrite *to, __u16 source, __u16 destination)
{
	const struct packet *packet = to->packet;
	const struct flow_key *tuple = &packet->tuple;
	long error;

	if (rewrite_is_icmp(packet))
		return packet->echo_reply
			       ? rewrite_port(to, tuple->destination_port, destination,
					      ICMP_IDENTIFIER)
			       : rewrite_port(to, tuple->source_port, source, ICMP_IDENTIFIER);
	if (tuple->protocol == PROTOCOL_SCTP)
		return rewrite_sctp_ports(to, source, destination);
	error = rewrite_port(to, tuple->source_port, source, SOURCE_PORT);
	return error ?: rewrite_port(to, tuple->destination_port, destination, DESTINATION_PORT);
}

/* Applies the translation of the direction that packet->tuple has. */
VERIFIED_ONCE int rewrite_packet(struct __sk_buff *skb, const struct packet *packet,
				 const struct translation *translation)
{
	struct rewrite to = {.skb = skb, .packet = packet};
	long error;
	bool in;

	if (!packet || !translation)
		return -1;
	in = packet->tuple.direction == DIRECTION_IN;
	to.checksum = rewrite_checksum_offset(packet);
	/* A later fragment has no checksum, and no ports that could differ. */
	to.pseudo_header = packet->tuple.protocol != PROTOCOL_ICMP &&
			   packet->tuple.protocol != PROTOCOL_SCTP &&
			   packet->fragment != LATER_FRAGMENT && !packet->no_checksum;
	if (packet->tuple.protocol == PROTOCOL_UDP)
		to.flags = BPF_F_MARK_MANGLED_0; /* a checksum of 0, "none", stays 0 */
	if (in)
		error = rewrite_address(&to, packet->tuple.destination, translation->address,
					false);
	else
		error = rewrite_address(&to, packet->tuple.source, translation->address, true);
	if (in)
		error = error ?: rewrite_ports(&to, translation->peer_port, translation->port);
	else
		error = error ?: rewrite_ports(&to, translation->port, translation->peer_port);
	return error ? -1 : 0;
}

/*
 * ICMP errors. What is changed in the quoted packet is data to the error's own
 * checksum, which follows every single write; it does not matter then which of
 * the quoted checksums were quoted, and how they depend on each other.
 */
static __always_inline long rewrite_quoted_word(const struct rewrite *to, __u32 offset, __be16 old,
						__be16 new)
{
	long error;

	if (old == new)
		return 0;
	error = bpf_l4_csum_replace(to->skb, to->checksum, old, new, sizeof(new));
	return error ?: bpf_skb_store_bytes(to->skb, offset, &new, sizeof(new), 0);
}

/* A checksum in the quoted packet, of whose data so much has changed. */
static __always_inline long rewrite_quoted_checksum(const struct rewrite *to, __u32 offset,
						    __u64 difference, bool zero_is_none)
{
	__u16 old, new;
	__u64 sum;

	if (offset + sizeof(old) > to->packet->end)
		return 0; /* not quoted */
	if (!packet_load(to->skb, offset, &old, sizeof(old)))
		return -1;
	if (zero_is_none && !old)
		return 0;
	sum = (__u16)~old + difference;
	for (int i = 0; i < 4; i++)
		sum = (sum & 0xffff) + (sum >> 16);
	new = ~sum;
	if (zero_is_none && !new)
		new = 0xffff;
	return rewrite_quoted_word(to, offset, old, new);
}

/* By the quoted header: its end need not be quoted. Nonsense where that lies. */
static __always_inline __u32 rewrite_quoted_transport_length(const struct rewrite *to)
{
	const struct packet *packet = to->packet;
	__u32 header_size = packet->quoted_l4_offset - packet->quoted_l3_offset;
	__u32 field = packet->ipv4 ? IPV4_TOTAL_LENGTH : IPV6_PAYLOAD_LENGTH;
	__u32 size = packet->ipv4 ? 0 : IPV6_HEADER_SIZE;
	__be16 length;

	if (!packet_load(to->skb, packet->quoted_l3_offset + field, &length, sizeof(length)))
		return 0;
	size += bpf_ntohs(length);
	return size - header_size;
}

/* It can be put right without the data behind it, which most errors do not quote. */
static __always_inline long rewrite_quoted_sctp_checksum(const struct rewrite *to, __u32 change)
{
	__u32 offset = to->packet->quoted_l4_offset + SCTP_CHECKSUM;
	__u32 length = rewrite_quoted_transport_length(to);
	__u32 old, new;
	long error;

	if (offset + sizeof(old) > to->packet->end)
		return 0; /* not quoted */
	if (!packet_load(to->skb, offset, &old, sizeof(old)))
		return -1;
	new = old;
	if (!rewrite_sctp_checksum(&new, change, length))
		return 0;
	error = bpf_l4_csum_replace(to->skb, to->checksum, old, new, sizeof(new));
	return error ?: bpf_skb_store_bytes(to->skb, offset, &new, sizeof(new), 0);
}

static __always_inline __u64 rewrite_word_difference(__u16 old, __u16 new)
{
	return (__u64)(__u16)~bpf_htons(old) + bpf_htons(new);
}

/* These two return what the change of address does to a checksum over it, or an error. */
static __always_inline __s64 rewrite_quoted_ipv4(const struct rewrite *to, __u32 field,
						 const __u8 *old_address, const __u8 *new_address)
{
	__be32 old = address_to_ipv4(old_address);
	__be32 new = address_to_ipv4(new_address);
	__u32 l3_offset = to->packet->quoted_l3_offset;
	__s64 difference = bpf_csum_diff(&old, sizeof(old), &new, sizeof(new), 0);
	long error;

	if (difference < 0)
		return difference;
	error = bpf_l4_csum_replace(to->skb, to->checksum, old, new, sizeof(new));
	error = error ?: bpf_skb_store_bytes(to->skb, l3_offset + field, &new, sizeof(new), 0);
	error = error ?: rewrite_quoted_checksum(to, l3_offset + IPV4_CHECKSUM, difference, false);
	return error ? -1 : difference;
}

static __always_inline __s64 rewrite_quoted_ipv6(const struct rewrite *to, __u32 field,
						 const __u8 *old_address, const __u8 *new_address)
{
	__s64 difference = bpf_csum_diff((__be32 *)old_address, 16, (__be32 *)new_address, 16, 0);
	long error;

	if (difference < 0)
		return difference;
	error = bpf_l4_csum_replace(to->skb, to->checksum, 0, difference, 0);
	error = error
			?: bpf_skb_store_bytes(to->skb, to->packet->quoted_l3_offset + field,
					       new_address, 16, 0);
	return error ? -1 : difference;
}

static __always_inline __s64 rewrite_quoted_address(const struct rewrite *to, bool source,
						    const __u8 *old_address,
						    const __u8 *new_address)
{
	if (to->packet->ipv4)
		return rewrite_quoted_ipv4(to, source ? IPV4_SOURCE : IPV4_DESTINATION, old_address,
					   new_address);
	return rewrite_quoted_ipv6(to, source ? IPV6_SOURCE : IPV6_DESTINATION, old_address,
				   new_address);
}

/* The quoted ports: of the side whose address is translated, and of its peer. */
static __always_inline long rewrite_quoted_ports(const struct rewrite *to, __u32 own_field,
						 __u16 own_old, __u16 own_new, __u32 peer_field,
						 __u16 peer_old, __u16 peer_new)
{
	__u32 l4_offset = to->packet->quoted_l4_offset;
	long error;

	error = rewrite_quoted_word(to, l4_offset + own_field, bpf_htons(own_old),
				    bpf_htons(own_new));
	return error
		       ?: rewrite_quoted_word(to, l4_offset + peer_field, bpf_htons(peer_old),
					      bpf_htons(peer_new));
}

static __always_inline __u32 rewrite_quoted_checksum_offset(const struct packet *packet)
{
	switch (packet->tuple.protocol) {
	case PROTOCOL_TCP:
		return packet->quoted_l4_offset + TCP_CHECKSUM;
	case PROTOCOL_UDP:
		return packet->quoted_l4_offset + UDP_CHECKSUM;
	default:
		return packet->quoted_l4_offset + ICMP_CHECKSUM;
	}
}

/* The quoted packet went the other way: its source is our destination (IN), its
 * destination our source (OUT). An echo identifier stands in one place. */
static __always_inline long rewrite_quoted_packet(const struct rewrite *to,
						  const struct translation *translation)
{
	const struct flow_key *tuple = &to->packet->tuple;
	bool in = tuple->direction == DIRECTION_IN;
	__u16 own_old = in ? tuple->destination_port : tuple->source_port;
	__u16 peer_old = in ? tuple->source_port : tuple->destination_port;
	__u8 protocol = tuple->protocol;
	__s64 difference;
	__u64 total;
	long error;

	difference = rewrite_quoted_address(to, in, in ? tuple->destination : tuple->source,
					    translation->address);
	if (difference < 0)
		return -1;
	if (packet_protocol_has_ports(protocol))
		error = rewrite_quoted_ports(to, in ? SOURCE_PORT : DESTINATION_PORT, own_old,
					     translation->port, in ? DESTINATION_PORT : SOURCE_PORT,
					     peer_old, translation->peer_port);
	else
		error = rewrite_quoted_ports(to, ICMP_IDENTIFIER, own_old, translation->port,
					     ICMP_IDENTIFIER, peer_old, translation->peer_port);
	if (error)
		return error;
	if (protocol == PROTOCOL_SCTP)
		return rewrite_quoted_sctp_checksum(
			to, in ? rewrite_ports_word(own_old ^ translation->port,
						    peer_old ^ translation->peer_port)
			       : rewrite_ports_word(peer_old ^ translation->peer_port,
						    own_old ^ translation->port));
	total = protocol == PROTOCOL_ICMP ? 0 : difference;
	total += rewrite_word_difference(own_old, translation->port);
	total += rewrite_word_difference(peer_old, translation->peer_port);
	return rewrite_quoted_checksum(to, rewrite_quoted_checksum_offset(to->packet), total,
				       protocol == PROTOCOL_UDP);
}

/* Applies the translation of a flow to an error about one of its packets. */
VERIFIED_ONCE int rewrite_error(struct __sk_buff *skb, const struct packet *packet,
				const struct translation *translation)
{
	struct rewrite to = {.skb = skb, .packet = packet};
	long error = 0;

	if (!packet || !translation)
		return -1;
	to.checksum = packet->l4_offset + ICMP_CHECKSUM;
	to.pseudo_header = !packet->ipv4;
	if (packet->tuple.direction == DIRECTION_IN)
		error = rewrite_address(&to, packet->tuple.destination, translation->address,
					false);
	else if (packet->from_endpoint)
		error = rewrite_address(&to, packet->sender, translation->address, true);
	error = error ?: rewrite_quoted_packet(&to, translation);
	return error ? -1 : 0;
}

static __always_inline long rewrite_ipv4_hop(struct __sk_buff *skb, const struct packet *packet)
{
	void *ip = packet_linear(skb, packet->l3_offset, sizeof(struct iphdr));
	__u32 l3_offset = packet->l3_offset;
	__u8 new = packet->hop_limit - 1;
	long error;

	if (ip) {
		__u16 *checksum = ip + IPV4_CHECKSUM;

		*checksum = rewrite_sum(*checksum, (__u16)~bpf_htons(0x100));
		*(__u8 *)(ip + IPV4_TIME_TO_LIVE) = new;
		return 0;
	}
	error = bpf_l3_csum_replace(skb, l3_offset + IPV4_CHECKSUM,
				    bpf_htons(packet->hop_limit << 8), bpf_htons(new << 8),
				    sizeof(__be16));
	return error
		       ?: bpf_skb_store_bytes(skb, l3_offset + IPV4_TIME_TO_LIVE, &new, sizeof(new),
					      0);
}

static __always_inline long rewrite_ipv6_hop(struct __sk_buff *skb, const struct packet *packet)
{
	__u32 offset = packet->l3_offset + IPV6_HOP_LIMIT;
	__u8 *hop_limit = packet_linear(skb, offset, sizeof(*hop_limit));
	__u8 new = packet->hop_limit - 1;

	if (!hop_limit)
		return bpf_skb_store_bytes(skb, offset, &new, sizeof(new), BPF_F_RECOMPUTE_CSUM);
	*hop_limit = new;
	bpf_csum_update(skb, (__u16)~bpf_htons(1)); /* in the low half of its word */
	return 0;
}

/* The MACs of a frame are no part of any sum: that begins behind them. */
static __always_inline long rewrite_macs(struct __sk_buff *skb, const __u8 *macs)
{
	__u32 *frame = packet_linear(skb, 0, ETH_HLEN);
	const __u32 *new = __builtin_assume_aligned(macs, 4);

	if (!frame)
		return bpf_skb_store_bytes(skb, 0, macs, 2 * ETH_ALEN, 0);
	for (int i = 0; i < 3; i++)
		frame[i] = new[i];
	return 0;
}

/* What bpf_redirect_peer() does by itself since 6.15. A frame that a bridge's port has received for
 * the bridge is another host's until somebody says so, and would be dropped. */
static __always_inline void rewrite_for_container(struct __sk_buff *skb)
{
	skb->mark = 0;
	if (skb->pkt_type != PACKET_HOST)
		bpf_skb_change_type(skb, PACKET_HOST);
}

/* What else the IP stack changes in a packet on its way through: one hop less, another frame. */
static __always_inline long rewrite_forwarded(struct __sk_buff *skb, const struct packet *packet,
					      const struct translation *translation)
{
	long error = packet->ipv4 ? rewrite_ipv4_hop(skb, packet) : rewrite_ipv6_hop(skb, packet);

	return error ?: rewrite_macs(skb, translation->frame_destination);
}

/* bpf_redirect_neigh() makes a new Ethernet header in the place of an old one, and drops
 * what has none, as a packet that is about to leave by tun or WireGuard. */
static __always_inline long rewrite_make_room_for_link_header(struct __sk_buff *skb,
							      const struct packet *packet)
{
	return packet->l3_offset ? 0 : bpf_skb_change_head(skb, ETH_HLEN, 0);
}

/* Puts another IP packet of the same datagram into the frame. */
static __always_inline long rewrite_whole(struct __sk_buff *skb, __u32 l3_offset, const __u8 *bytes,
					  __u32 length)
{
	long error = bpf_skb_change_tail(skb, l3_offset + length, 0);

	return error ?: bpf_skb_store_bytes(skb, l3_offset, bytes, length, BPF_F_RECOMPUTE_CSUM);
}

/* Hands a frame that would be switched to the bridge itself, and so to the IP stack. */
static __always_inline long rewrite_destination_mac(struct __sk_buff *skb, const __u8 *mac)
{
	__u8 copy[8] = {};

	__builtin_memcpy(copy, mac, ETH_ALEN);
	return bpf_skb_store_bytes(skb, 0, copy, ETH_ALEN, 0);
}

#endif
