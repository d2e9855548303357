/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * parse_ip.h - layer 3: IPv4, IPv6 with its extension headers, fragments.
 *
 * A packet whose IP header is invalid is IGNORED, that is passed unchanged, because the IP stack
 * drops it. If only its payload is invalid it is OPAQUE, because the stack would forward it with a
 * container's address as its source.
 */
#ifndef BPF_PORTMAP_PARSE_IP_H
#define BPF_PORTMAP_PARSE_IP_H

#include "packet.h"

#define IPV4_FRAGMENT_OFFSET 0x1fff
#define IPV4_FRAGMENT 0x3fff /* more fragments, or an offset */
#define IPV6_FRAGMENT_OFFSET 0xfff8
#define IPV6_FRAGMENT 0xfff9
#define IPV6_EXTENSION_HEADERS 6 /* a packet with as many is OPAQUE */

#define NEXTHDR_HOP 0
#define NEXTHDR_ROUTING 43
#define NEXTHDR_FRAGMENT 44
#define NEXTHDR_DESTINATION 60

/* The start of all extension headers, and the fields that are read. */
struct extension_header {
	__u8 next;
	__u8 length; /* in units of 8 bytes, without the first (RFC 8200 4.2) */
	union {
		struct {
			__u8 type;
			__u8 segments_left;
		} routing;
		__be16 fragment;
	};
	__be32 identification; /* of a fragment header */
};

/* What the IP headers say about the payload. */
struct ip_payload {
	__u32 identification;
	int protocol;          /* the transport's; -1: not found or not present */
	__u16 offset;          /* of the payload; during parsing, of the next extension header */
	__u16 fragment_offset; /* in bytes */
	__u8 first_header;     /* after the fragment header: all that a later fragment has */
	bool fragment;         /* the datagram is in more than one piece */
	bool has_fragment_header;
	__u8 reserved;
};

INLINE bool parse_is_extension(__u8 protocol)
{
	return protocol == NEXTHDR_HOP || protocol == NEXTHDR_ROUTING ||
	       protocol == NEXTHDR_DESTINATION;
}

INLINE bool parse_is_skipped(__u8 protocol)
{
	return protocol == NEXTHDR_FRAGMENT || parse_is_extension(protocol);
}

/* Returns the protocol of the next header, or -1: the header is missing or invalid, or a routing
 * header has segments left, so that the destination is not final. */
INLINE int parse_extension_header(struct __sk_buff *skb, struct ip_payload *payload, __u8 protocol)
{
	struct extension_header header;
	__u16 fragment;

	if (!packet_load(skb, payload->offset, &header, sizeof(header)))
		return -1;
	payload->offset += sizeof(header);
	if (protocol != NEXTHDR_FRAGMENT) {
		payload->offset += header.length * 8;
		return protocol == NEXTHDR_ROUTING && header.routing.segments_left ? -1
										   : header.next;
	}
	if (payload->has_fragment_header)
		return -1;
	fragment = bpf_ntohs(header.fragment) & IPV6_FRAGMENT;
	payload->has_fragment_header = true;
	payload->fragment = fragment != 0;
	payload->fragment_offset = fragment & IPV6_FRAGMENT_OFFSET;
	payload->identification = bpf_ntohl(header.identification);
	payload->first_header = header.next;
	return header.next;
}

/* Stops at the transport header; in a later fragment, behind the fragment header. Returns
 * the protocol found there, or -1: a header cannot be skipped, or there are too many. */
GLOBAL_FUNCTION int parse_extension_headers(struct __sk_buff *skb, struct ip_payload *payload,
					    __u8 first)
{
	int protocol = first;

	if (!payload)
		return -1;
	for (int i = 0; i < IPV6_EXTENSION_HEADERS; i++) {
		if (protocol < 0 || !parse_is_skipped(protocol))
			return protocol;
		protocol = parse_extension_header(skb, payload, protocol);
		if (payload->fragment_offset)
			return protocol;
	}
	return -1;
}

/* Mappings and masquerading concern unicast addresses that are valid beyond one link. */
INLINE bool parse_is_natable(const __u8 *address)
{
	return !address_is_group(address) && !address_is_loopback(address) &&
	       !address_is_ipv6_link_local(address);
}

/* parse_ipv4() and parse_ipv6() return PACKET_TRANSLATABLE if layer 3 is valid. */
INLINE enum packet_kind parse_ipv4(struct __sk_buff *skb, struct packet *packet,
				   struct ip_payload *payload)
{
	struct tuple *tuple = &packet->tuple;
	__u32 header_length;
	__u16 fragment;
	struct iphdr ip;

	if (!packet_load_header(skb, packet->l3_offset, &ip, sizeof(ip)))
		return PACKET_IGNORED;
	header_length = ip.ihl * 4;
	if (ip.version != 4 || header_length < sizeof(ip))
		return PACKET_IGNORED;
	packet->end = packet->l3_offset + bpf_ntohs(ip.tot_len);
	/* 0: BIG TCP (since 6.3); the kernel accepts it in any packet that is to be segmented. */
	if (ip.tot_len == 0 && (skb->gso_size || skb->len > 0xffff))
		packet->end = skb->len;
	if (packet->end > skb->len || packet->l3_offset + header_length > packet->end)
		return PACKET_IGNORED;
	packet->ipv4 = true;
	packet->hop_limit = ip.ttl;
	packet->type_of_service = ip.tos;
	address_from_ipv4(tuple->source, ip.saddr);
	address_from_ipv4(tuple->destination, ip.daddr);
	fragment = bpf_ntohs(ip.frag_off) & IPV4_FRAGMENT;
	payload->fragment = fragment != 0;
	payload->fragment_offset = (fragment & IPV4_FRAGMENT_OFFSET) << 3;
	payload->identification = bpf_ntohs(ip.id);
	payload->first_header = ip.protocol;
	payload->offset = packet->l3_offset + header_length;
	payload->protocol = ip.protocol;
	return parse_is_natable(tuple->source) && parse_is_natable(tuple->destination)
		       ? PACKET_TRANSLATABLE
		       : PACKET_IGNORED;
}

INLINE enum packet_kind parse_ipv6(struct __sk_buff *skb, struct packet *packet,
				   struct ip_payload *payload)
{
	struct tuple *tuple = &packet->tuple;
	struct ipv6hdr ip __attribute__((aligned(8)));

	if (!packet_load_header(skb, packet->l3_offset, &ip, sizeof(ip)) || ip.version != 6)
		return PACKET_IGNORED;
	packet->hop_limit = ip.hop_limit;
	payload->offset = packet->l3_offset + sizeof(ip);
	payload->protocol = ip.nexthdr;
	packet->end = payload->offset + bpf_ntohs(ip.payload_len);
	if (ip.payload_len == 0 && skb->len > 0xffff) /* BIG TCP (since 5.19) */
		packet->end = skb->len;
	if (packet->end > skb->len)
		return PACKET_IGNORED;
	address_copy(tuple->source, (__u8 *)&ip.saddr);
	address_copy(tuple->destination, (__u8 *)&ip.daddr);
	/* On the wire a v4-mapped address is invalid, and here it would be mistaken for IPv4.
	 * The stack drops it as a source, but forwards it as a destination. */
	if (address_is_ipv4(tuple->source) || !parse_is_natable(tuple->source) ||
	    !parse_is_natable(tuple->destination))
		return PACKET_IGNORED;
	if (address_is_ipv4(tuple->destination))
		return PACKET_OPAQUE;
	/* Without a call, since most packets have no extension header. */
	if (parse_is_skipped(ip.nexthdr))
		payload->protocol = parse_extension_headers(skb, payload, ip.nexthdr);
	return PACKET_TRANSLATABLE;
}

INLINE bool parse_is_icmp(const struct packet *packet, int protocol)
{
	return protocol == (packet->ipv4 ? PROTOCOL_ICMP : PROTOCOL_ICMPV6);
}

/* Returns PACKET_TRANSLATABLE for a first fragment, whose transport header must be parsed. That
 * header must be complete there (RFC 7112), and no later fragment may overwrite it: one at offset 8
 * would contain TCP's flags (RFC 1858). */
INLINE enum packet_kind parse_fragment(struct packet *packet, const struct ip_payload *payload)
{
	__u8 first_header = payload->first_header;

	if (!packet_protocol_has_ports(first_header) && !parse_is_icmp(packet, first_header) &&
	    (packet->ipv4 || !parse_is_extension(first_header)))
		return PACKET_OPAQUE;
	packet->tuple.protocol = first_header;
	packet->identification = payload->identification;
	if (first_header == PROTOCOL_TCP && payload->fragment_offset == 8)
		return PACKET_OPAQUE;
	packet->fragment = payload->fragment_offset ? LATER_FRAGMENT : FIRST_FRAGMENT;
	return payload->fragment_offset ? PACKET_FRAGMENT : PACKET_TRANSLATABLE;
}

#endif
