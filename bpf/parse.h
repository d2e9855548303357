/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * parse.h - makes a struct packet of headers: IPv4, IPv6 with its extension headers, fragments;
 * ports, identifiers of ICMP queries, and the packet that an ICMP error quotes.
 *
 * A packet whose IP header is invalid is IGNORED, that is passed unchanged, because the IP stack
 * drops it. If only its payload is invalid it is OPAQUE, because the stack would forward it with a
 * container's address as its source.
 */
#pragma once

#include "packet.h"
#include "sctp.h"

#define IPV4_FRAGMENT_OFFSET 0x1fff
#define IPV4_FRAGMENT 0x3fff /* more fragments, or an offset */
#define IPV6_FRAGMENT_OFFSET 0xfff8
#define IPV6_FRAGMENT 0xfff9
#define IPV6_EXTENSION_HEADERS 6 /* a packet with as many is OPAQUE */

#define NEXTHDR_HOP 0
#define NEXTHDR_ROUTING 43
#define NEXTHDR_FRAGMENT 44
#define NEXTHDR_DESTINATION 60

#define ICMP_ECHO_REPLY 0
#define ICMP_ECHO_REQUEST 8
#define ICMP_TIMESTAMP_REQUEST 13
#define ICMP_TIMESTAMP_REPLY 14
#define ICMPV6_ECHO_REQUEST 128
#define ICMPV6_ECHO_REPLY 129
#define ICMP_DEST_UNREACH 3
#define ICMP_TIME_EXCEEDED 11
#define ICMP_PARAMETERPROB 12
#define ICMPV6_DEST_UNREACH 1
#define ICMPV6_PARAMPROB 4
#define ICMPV6_NEIGHBOUR_ADVERTISEMENT 136
#define NEIGHBOUR_HOP_LIMIT 255 /* an advertisement with another one is ignored (RFC 4861) */

struct echo_header {
	__u8 type;
	__u8 code;
	__be16 checksum;
	__be16 identifier;
	__be16 sequence;
};

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

/* Returns the protocol of the next header, or -1: none, or an invalid one, or the destination is
 * not final, as a routing header has segments left. */
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
	    !packet_protocol_is_portless(first_header) &&
	    (packet->ipv4 || !parse_is_extension(first_header)))
		return PACKET_OPAQUE;
	packet->tuple.protocol = first_header;
	packet->identification = payload->identification;
	if (first_header == PROTOCOL_TCP && payload->fragment_offset == 8)
		return PACKET_OPAQUE;
	packet->fragment = payload->fragment_offset ? LATER_FRAGMENT : FIRST_FRAGMENT;
	return payload->fragment_offset ? PACKET_FRAGMENT : PACKET_TRANSLATABLE;
}

INLINE bool parse_load(struct __sk_buff *skb, const struct packet *packet, __u32 offset, void *to,
		       __u32 size)
{
	return offset + size <= packet->end && packet_load_header(skb, offset, to, size);
}

/* Returns whether the type is one of two. Compilers would make a shift of it, and some kernels
 * (6.12, 7.2) lose their way when they trace a shift's operand back to the stack. */
INLINE bool parse_is_either(__u8 type, __u8 one, __u8 other)
{
	bool is_one = type == one;

	barrier_var(type);
	return is_one || type == other;
}

/* Returns false where it is neither echo nor timestamp, whose header begins alike. Of one requester
 * and identifier both are one connection, so one identifier outside serves both. The tuple is a
 * reply's if the packet is a reply or quotes a request. */
INLINE bool parse_echo(struct packet *packet, struct tuple *tuple, const struct echo_header *echo,
		       bool quoted)
{
	bool request = packet->ipv4 ? parse_is_either(echo->type, ICMP_ECHO_REQUEST,
						      ICMP_TIMESTAMP_REQUEST)
				    : echo->type == ICMPV6_ECHO_REQUEST;
	bool reply = packet->ipv4
			     ? parse_is_either(echo->type, ICMP_ECHO_REPLY, ICMP_TIMESTAMP_REPLY)
			     : echo->type == ICMPV6_ECHO_REPLY;

	packet->echo_reply = quoted ? request : reply;
	if (packet->echo_reply)
		tuple->destination_port = bpf_ntohs(echo->identifier);
	else if (request || reply)
		tuple->source_port = bpf_ntohs(echo->identifier);
	return request || reply;
}

/* Reads only the first eight bytes of the transport header; an error need not quote more. */
INLINE bool parse_quoted_ports(struct __sk_buff *skb, struct packet *packet, struct tuple *back)
{
	union {
		struct udphdr ports; /* the others' are in the same place */
		struct echo_header echo;
	} quoted;

	if (!parse_load(skb, packet, packet->quoted_l4_offset, &quoted, sizeof(quoted)))
		return false;
	if (packet_protocol_is_portless(back->protocol))
		return true;
	if (!packet_protocol_has_ports(back->protocol))
		return parse_is_icmp(packet, back->protocol) &&
		       parse_echo(packet, back, &quoted.echo, true);
	back->source_port = bpf_ntohs(quoted.ports.dest);
	back->destination_port = bpf_ntohs(quoted.ports.source);
	return true;
}

INLINE bool parse_quoted_ipv4(struct __sk_buff *skb, struct packet *packet, struct tuple *back)
{
	struct iphdr ip;

	if (!parse_load(skb, packet, packet->quoted_l3_offset, &ip, sizeof(ip)) ||
	    ip.version != 4 || ip.ihl * 4 < sizeof(ip))
		return false;
	if (bpf_ntohs(ip.frag_off) & IPV4_FRAGMENT_OFFSET)
		return false; /* payload in place of the ports */
	address_from_ipv4(back->destination, ip.saddr);
	address_from_ipv4(back->source, ip.daddr);
	back->protocol = ip.protocol;
	packet->quoted_l4_offset = packet->quoted_l3_offset + ip.ihl * 4;
	return true;
}

INLINE bool parse_quoted_ipv6(struct __sk_buff *skb, struct packet *packet, struct tuple *back)
{
	struct ip_payload payload = {};
	struct ipv6hdr ip __attribute__((aligned(8)));
	int protocol;

	if (!parse_load(skb, packet, packet->quoted_l3_offset, &ip, sizeof(ip)) || ip.version != 6)
		return false;
	address_copy(back->destination, (__u8 *)&ip.saddr);
	address_copy(back->source, (__u8 *)&ip.daddr);
	payload.offset = packet->quoted_l3_offset + sizeof(ip);
	protocol = parse_extension_headers(skb, &payload, ip.nexthdr);
	if (protocol < 0 || payload.fragment_offset)
		return false;
	packet->quoted_l4_offset = payload.offset;
	back->protocol = protocol;
	return true;
}

INLINE bool parse_is_error(const struct packet *packet, __u8 type)
{
	if (packet->ipv4)
		return type == ICMP_DEST_UNREACH || type == ICMP_TIME_EXCEEDED ||
		       type == ICMP_PARAMETERPROB;
	return type >= ICMPV6_DEST_UNREACH && type <= ICMPV6_PARAMPROB;
}

/* An error must go to the sender of the packet that it quotes, like a reply. */
GLOBAL_FUNCTION enum packet_kind parse_error(struct __sk_buff *skb, struct packet *packet,
					     __u8 type)
{
	struct tuple back = {};

	if (!packet || !parse_is_error(packet, type) || packet->fragment)
		return PACKET_OPAQUE;
	packet->quoted_l3_offset = packet->l4_offset + sizeof(struct echo_header);
	if (packet->ipv4 ? !parse_quoted_ipv4(skb, packet, &back)
			 : !parse_quoted_ipv6(skb, packet, &back))
		return PACKET_OPAQUE;
	if (!parse_quoted_ports(skb, packet, &back) ||
	    !address_equal(back.destination, packet->tuple.destination))
		return PACKET_OPAQUE;
	packet->tuple = back;
	packet->error = true;
	return PACKET_ERROR;
}

INLINE enum packet_kind parse_icmp(struct __sk_buff *skb, struct packet *packet)
{
	struct echo_header echo;

	if (!parse_load(skb, packet, packet->l4_offset, &echo, sizeof(echo)))
		return PACKET_OPAQUE;
	if (!parse_echo(packet, &packet->tuple, &echo, false))
		return parse_error(skb, packet, echo.type);
	return echo.code ? PACKET_OPAQUE : PACKET_TRANSLATABLE;
}

/* lite: the length is that of what the checksum covers, 0 is all, and there is always a checksum
 * (RFC 3828 3.1). */
INLINE enum packet_kind parse_udp(struct __sk_buff *skb, struct packet *packet, bool lite)
{
	struct udphdr udp;
	__u16 length;

	if (!parse_load(skb, packet, packet->l4_offset, &udp, sizeof(udp)) || (lite && !udp.check))
		return PACKET_OPAQUE;
	length = lite && !udp.len ? sizeof(udp) : bpf_ntohs(udp.len);
	if (length < sizeof(udp) || (!packet->fragment && packet->l4_offset + length > packet->end))
		return PACKET_OPAQUE;
	packet->no_checksum = udp.check == 0;
	packet->tuple.source_port = bpf_ntohs(udp.source);
	packet->tuple.destination_port = bpf_ntohs(udp.dest);
	return PACKET_TRANSLATABLE;
}

INLINE enum packet_kind parse_tcp(struct __sk_buff *skb, struct packet *packet)
{
	struct tcphdr tcp;

	if (!parse_load(skb, packet, packet->l4_offset, &tcp, sizeof(tcp)) ||
	    tcp.doff * 4 < sizeof(tcp) || packet->l4_offset + tcp.doff * 4 > packet->end)
		return PACKET_OPAQUE;
	packet->tuple.source_port = bpf_ntohs(tcp.source);
	packet->tuple.destination_port = bpf_ntohs(tcp.dest);
	packet->tcp_flags = ((__u8 *)&tcp)[13];
	packet->tcp_sequence = bpf_ntohl(tcp.seq);
	packet->tcp_acknowledgment = bpf_ntohl(tcp.ack_seq);
	packet->tcp_sequence_length =
		packet->end - packet->l4_offset - tcp.doff * 4 + tcp.syn + tcp.fin;
	return PACKET_TRANSLATABLE;
}

INLINE enum packet_kind parse_sctp(struct __sk_buff *skb, struct packet *packet)
{
	struct sctp_header sctp;

	if (!parse_load(skb, packet, packet->l4_offset, &sctp, sizeof(sctp)))
		return PACKET_OPAQUE;
	packet->tuple.source_port = bpf_ntohs(sctp.source_port);
	packet->tuple.destination_port = bpf_ntohs(sctp.destination_port);
	return PACKET_TRANSLATABLE;
}

INLINE enum packet_kind parse_transport(struct __sk_buff *skb, struct packet *packet, int protocol)
{
	if (protocol < 0)
		return PACKET_OPAQUE;
	packet->tuple.protocol = protocol;
	if (protocol == PROTOCOL_TCP)
		return parse_tcp(skb, packet);
	if (protocol == PROTOCOL_UDP)
		return parse_udp(skb, packet, false);
	if (protocol == PROTOCOL_SCTP)
		return parse_sctp(skb, packet);
	if (protocol == PROTOCOL_UDPLITE)
		return parse_udp(skb, packet, true);
	if (parse_is_icmp(packet, protocol))
		return parse_icmp(skb, packet);
	return packet_protocol_is_portless(protocol) && packet->l4_offset <= packet->end
		       ? PACKET_TRANSLATABLE
		       : PACKET_OPAQUE;
}

/* Not inlined, to keep the headers out of the callers' stack frames. */
GLOBAL_FUNCTION enum packet_kind parse_packet(struct __sk_buff *skb, struct packet *packet)
{
	struct ip_payload payload = {.protocol = -1};
	enum packet_kind kind = PACKET_IGNORED;

	if (!packet)
		return PACKET_IGNORED;
	if (skb->protocol == bpf_htons(ETH_P_IP))
		kind = parse_ipv4(skb, packet, &payload);
	else if (skb->protocol == bpf_htons(ETH_P_IPV6))
		kind = parse_ipv6(skb, packet, &payload);
	packet->l4_offset = payload.offset;
	address_copy(packet->sender, packet->tuple.source);
	if (kind == PACKET_TRANSLATABLE && payload.fragment)
		kind = parse_fragment(packet, &payload);
	return kind == PACKET_TRANSLATABLE ? parse_transport(skb, packet, payload.protocol) : kind;
}

/* What ARP says about its sender (RFC 826); the hardware is Ethernet. */
struct arp_sender {
	__be16 hardware;
	__be16 protocol;
	__u8 hardware_size;
	__u8 protocol_size;
	__be16 operation;
	__u8 mac[ETH_ALEN];
	__be32 address;
} __attribute__((packed));

struct neighbour_advertisement {
	__u8 type;
	__u8 code;
	__be16 checksum;
	__be32 flags;
	__u8 target[16];
} __attribute__((aligned(8)));

/* Whether a packet tells its link at which MAC an address is. */
enum claim {
	CLAIM_NONE,
	CLAIM_READ,
	CLAIM_HIDDEN, /* it may, behind more extension headers than are read */
};

INLINE enum claim parse_arp(struct __sk_buff *skb, struct packet *packet)
{
	struct arp_sender arp;

	if (!packet_load(skb, packet->l3_offset, &arp, sizeof(arp)) ||
	    arp.protocol != bpf_htons(ETH_P_IP) || !arp.address) /* 0: a probe (RFC 5227) */
		return CLAIM_NONE;
	packet->ipv4 = true;
	address_from_ipv4(packet->sender, arp.address);
	return CLAIM_READ;
}

INLINE enum claim parse_advertisement(struct __sk_buff *skb, struct packet *packet)
{
	struct neighbour_advertisement advertisement;
	struct ip_payload payload = {.offset = packet->l3_offset + sizeof(struct ipv6hdr)};
	struct ipv6hdr ip __attribute__((aligned(8)));
	int protocol;

	if (!packet_load_header(skb, packet->l3_offset, &ip, sizeof(ip)) ||
	    ip.hop_limit != NEIGHBOUR_HOP_LIMIT)
		return CLAIM_NONE;
	protocol = parse_extension_headers(skb, &payload, ip.nexthdr);
	if (protocol < 0)
		return CLAIM_HIDDEN;
	if (protocol != PROTOCOL_ICMPV6 ||
	    !packet_load(skb, payload.offset, &advertisement, sizeof(advertisement)) ||
	    advertisement.type != ICMPV6_NEIGHBOUR_ADVERTISEMENT)
		return CLAIM_NONE;
	address_copy(packet->sender, advertisement.target);
	return CLAIM_READ;
}

/* CLAIM_READ: packet->sender is the address from now on. Of a neighbour solicitation, which
 * neighbours learn from, too, it is that anyway. */
GLOBAL_FUNCTION enum claim parse_claim(struct __sk_buff *skb, struct packet *packet)
{
	if (!packet)
		return CLAIM_NONE;
	if (skb->protocol == bpf_htons(ETH_P_ARP))
		return parse_arp(skb, packet);
	return skb->protocol == bpf_htons(ETH_P_IPV6) ? parse_advertisement(skb, packet)
						      : CLAIM_NONE;
}

/* l3_offset: where the IP header is; 0 on interfaces without a link-layer header. */
INLINE enum packet_kind packet_parse(struct __sk_buff *skb, struct packet *packet, __u16 l3_offset,
				     enum direction direction)
{
	__builtin_memset(packet, 0, sizeof(*packet));
	packet->tuple.direction = direction;
	packet->l3_offset = l3_offset;
	/* A tagged frame appears again, untagged, at the VLAN's device. VID 0 is a priority. */
	if (skb->vlan_present && (skb->vlan_tci & VLAN_VID_MASK))
		return PACKET_IGNORED;
	return parse_packet(skb, packet);
}
