/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* parse_l4.h - layer 4: ports, identifiers of ICMP queries, and the packet that an ICMP error
 * quotes. */
#ifndef BPF_PORTMAP_PARSE_L4_H
#define BPF_PORTMAP_PARSE_L4_H

#include "parse_ip.h"
#include "sctp.h"

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

struct echo_header {
	__u8 type;
	__u8 code;
	__be16 checksum;
	__be16 identifier;
	__be16 sequence;
};

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

INLINE bool parse_is_request(const struct packet *packet, __u8 type)
{
	if (!packet->ipv4)
		return type == ICMPV6_ECHO_REQUEST;
	return parse_is_either(type, ICMP_ECHO_REQUEST, ICMP_TIMESTAMP_REQUEST);
}

INLINE bool parse_is_reply(const struct packet *packet, __u8 type)
{
	if (!packet->ipv4)
		return type == ICMPV6_ECHO_REPLY;
	return parse_is_either(type, ICMP_ECHO_REPLY, ICMP_TIMESTAMP_REPLY);
}

/* Returns false where it is neither echo nor timestamp, whose header begins alike. Of one requester
 * and identifier both are one connection, so one identifier outside serves both. The tuple is a
 * reply's if the packet is a reply or quotes a request. */
INLINE bool parse_echo(struct packet *packet, struct tuple *tuple, const struct echo_header *echo,
		       bool quoted)
{
	bool request = parse_is_request(packet, echo->type);
	bool reply = parse_is_reply(packet, echo->type);

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
	return parse_is_icmp(packet, protocol) ? parse_icmp(skb, packet) : PACKET_OPAQUE;
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

#endif
