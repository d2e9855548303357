/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* icmp_error_rewrite.h - translates an ICMP error, and the packet that it quotes. */
#pragma once

#include "rewrite.h"

/* `size` is 2 or 4. */
INLINE long rewrite_quoted_word(const struct rewrite *to, __u32 offset, __u32 old, __u32 new,
				__u32 size)
{
	long error;

	if (old == new)
		return 0;
	error = bpf_l4_csum_replace(to->skb, to->checksum, old, new, size);
	return error ?: bpf_skb_store_bytes(to->skb, offset, &new, size, 0);
}

/* Rewrites a checksum over data that has changed by `difference` in sum. */
INLINE long rewrite_quoted_checksum(const struct rewrite *to, __u32 offset, __u64 difference,
				    bool zero_is_none)
{
	__u16 old, new;

	if (offset + sizeof(old) > to->packet->end)
		return 0; /* not quoted */
	if (!packet_load(to->skb, offset, &old, sizeof(old)))
		return -1;
	if (zero_is_none && !old)
		return 0;
	new = rewrite_sum(old, difference);
	if (zero_is_none && !new)
		new = 0xffff;
	return rewrite_quoted_word(to, offset, old, new, sizeof(new));
}

/* Returns what the quoted IP header says, since the end need not be quoted. */
INLINE __u32 rewrite_quoted_transport_length(const struct rewrite *to)
{
	const struct packet *packet = to->packet;
	__u32 header_size = packet->quoted_l4_offset - packet->quoted_l3_offset;
	__u32 field = packet->ipv4 ? offsetof(struct iphdr, tot_len)
				   : offsetof(struct ipv6hdr, payload_len);
	__be16 length;

	if (!packet_load(to->skb, packet->quoted_l3_offset + field, &length, sizeof(length)))
		return 0;
	return bpf_ntohs(length) + (packet->ipv4 ? 0 : sizeof(struct ipv6hdr)) - header_size;
}

/* The CRC can be corrected without the data after it, which most errors do not quote. */
INLINE long rewrite_quoted_sctp_checksum(const struct rewrite *to, __u32 offset, __u32 change)
{
	__u32 length = rewrite_quoted_transport_length(to), old, new;

	if (offset + sizeof(old) > to->packet->end)
		return 0; /* not quoted */
	if (!packet_load(to->skb, offset, &old, sizeof(old)))
		return -1;
	new = sctp_checksum(old, change, length);
	return rewrite_quoted_word(to, offset, old, new, sizeof(new));
}

INLINE long rewrite_quoted_address(const struct rewrite *to, bool source, const __u8 *new_address,
				   __u32 difference)
{
	__u32 l3_offset = to->packet->quoted_l3_offset;
	__u32 ipv4_field = source ? IPV4_SOURCE : IPV4_DESTINATION;
	__u32 ipv6_field = source ? IPV6_SOURCE : IPV6_DESTINATION;
	long error = bpf_l4_csum_replace(to->skb, to->checksum, 0, difference, 0);

	if (error)
		return error;
	if (!to->packet->ipv4)
		return bpf_skb_store_bytes(to->skb, l3_offset + ipv6_field, new_address, 16, 0);
	error = bpf_skb_store_bytes(to->skb, l3_offset + ipv4_field, new_address + 12, 4, 0);
	return error ?: rewrite_quoted_checksum(to, l3_offset + IPV4_CHECKSUM, difference, false);
}

/* The quoted packet went in the opposite direction of the tuple: its source is the tuple's
 * destination. Of an echo's two ports one is 0 before and after, the other is the identifier. */
INLINE long rewrite_quoted_packet(const struct rewrite *to, const struct translation *translation)
{
	const struct packet *packet = to->packet;
	const struct tuple *tuple = &packet->tuple;
	bool in = tuple->direction == DIRECTION_IN;
	__u16 source = in ? translation->peer_port : translation->port;
	__u16 destination = in ? translation->port : translation->peer_port;
	__u32 old = rewrite_ports_word(tuple->destination_port, tuple->source_port);
	__u32 new = rewrite_ports_word(destination, source);
	__u32 l4_offset = packet->quoted_l4_offset;
	__u32 checksum = l4_offset + rewrite_checksum_field(tuple->protocol);
	__u64 difference = rewrite_difference(packet->ipv4, in ? tuple->destination : tuple->source,
					      translation->address);
	long error = rewrite_quoted_address(to, in, translation->address, difference);

	if (error || packet_protocol_is_portless(tuple->protocol))
		return error;
	if (packet_protocol_has_ports(tuple->protocol))
		error = rewrite_quoted_word(to, l4_offset, old, new, sizeof(new));
	else
		error = rewrite_quoted_word(to, l4_offset + ICMP_IDENTIFIER,
					    (__u16)(old | old >> 16), (__u16)(new | new >> 16), 2);
	if (error)
		return error;
	if (tuple->protocol == PROTOCOL_SCTP)
		return rewrite_quoted_sctp_checksum(to, checksum, old ^ new);
	if (!rewrite_checksum_covers_addresses(tuple->protocol))
		difference = 0;
	difference += (__u64)(__u32)~old + new;
	return rewrite_quoted_checksum(to, checksum, difference,
				       packet_protocol_is_udp(tuple->protocol));
}

GLOBAL_FUNCTION int rewrite_error(struct __sk_buff *skb, const struct packet *packet,
				  const struct translation *translation)
{
	struct rewrite to = {.skb = skb, .packet = packet};
	long error = 0;

	if (!packet || !translation)
		return -1;
	to.checksum = packet->l4_offset + ICMP_CHECKSUM;
	to.pseudo_header = !packet->ipv4;
	if (packet->tuple.direction == DIRECTION_IN)
		error = rewrite_address(&to, packet->tuple.destination, false,
					translation->address);
	else if (packet->from_endpoint)
		error = rewrite_address(&to, packet->sender, true, translation->address);
	error = error ?: rewrite_quoted_packet(&to, translation);
	return error ? -1 : 0;
}
