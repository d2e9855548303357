/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* parse_l4.h - layer 4: ports, echo identifiers, and the packet that an ICMP error quotes. Fills
 * struct packet. */
#ifndef BPF_PORTMAP_PARSE_L4_H
#define BPF_PORTMAP_PARSE_L4_H

#include "parse_ip.h"
#include "sctp.h"

#define ICMP_ECHO_REPLY 0
#define ICMP_ECHO_REQUEST 8
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

/* The transport header's first eight bytes; an error need not quote more. */
union quoted_transport {
	struct udphdr ports; /* TCP's and SCTP's are in the same place */
	struct echo_header echo;
};

INLINE bool parse_is_request(const struct packet *packet, __u8 type)
{
	return type == (packet->ipv4 ? ICMP_ECHO_REQUEST : ICMPV6_ECHO_REQUEST);
}

INLINE bool parse_is_reply(const struct packet *packet, __u8 type)
{
	return type == (packet->ipv4 ? ICMP_ECHO_REPLY : ICMPV6_ECHO_REPLY);
}

INLINE void parse_identifier(const struct packet *packet, struct tuple *tuple, __be16 identifier)
{
	if (packet->echo_reply)
		tuple->destination_port = bpf_ntohs(identifier);
	else
		tuple->source_port = bpf_ntohs(identifier);
}

INLINE bool parse_load_quoted(struct __sk_buff *skb, const struct packet *packet, __u32 offset,
			      void *to, __u32 size)
{
	return offset + size <= packet->end && packet_load(skb, offset, to, size);
}

INLINE bool parse_quoted_ports(struct __sk_buff *skb, struct packet *packet, struct tuple *back)
{
	union quoted_transport quoted;

	if (!parse_load_quoted(skb, packet, packet->quoted_l4_offset, &quoted, sizeof(quoted)))
		return false;
	if (packet_protocol_has_ports(back->protocol)) {
		back->source_port = bpf_ntohs(quoted.ports.dest);
		back->destination_port = bpf_ntohs(quoted.ports.source);
		return true;
	}
	if (!parse_is_icmp(packet, back->protocol))
		return false;
	packet->echo_reply = parse_is_request(packet, quoted.echo.type); /* its answer */
	if (!packet->echo_reply && !parse_is_reply(packet, quoted.echo.type))
		return false;
	parse_identifier(packet, back, quoted.echo.identifier);
	return true;
}

INLINE bool parse_quoted_ipv4(struct __sk_buff *skb, struct packet *packet, struct tuple *back)
{
	struct iphdr ip;

	if (!parse_load_quoted(skb, packet, packet->quoted_l3_offset, &ip, sizeof(ip)))
		return false;
	if (ip.version != 4 || ip.ihl * 4 < sizeof(ip))
		return false;
	if (bpf_ntohs(ip.frag_off) & IPV4_FRAGMENT_OFFSET)
		return false; /* payload stands where the ports would be */
	address_from_ipv4(back->destination, ip.saddr);
	address_from_ipv4(back->source, ip.daddr);
	back->protocol = ip.protocol;
	packet->quoted_l4_offset = packet->quoted_l3_offset + ip.ihl * 4;
	return true;
}

INLINE bool parse_quoted_ipv6(struct __sk_buff *skb, struct packet *packet, struct tuple *back)
{
	struct ip_payload payload = {};
	struct ipv6_header ip;
	int protocol;

	if (!parse_load_quoted(skb, packet, packet->quoted_l3_offset, &ip, sizeof(ip)))
		return false;
	if ((bpf_ntohl(ip.version_class_label) >> 28) != 6)
		return false;
	address_copy(back->destination, (__u8 *)ip.source);
	address_copy(back->source, (__u8 *)ip.destination);
	payload.offset = packet->quoted_l3_offset + sizeof(ip);
	protocol = parse_to_transport(skb, &payload, ip.next);
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

/* An error is sent to the sender of the packet that it quotes, so the connection is found by
 * the tuple of an answer to that packet. */
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

INLINE bool parse_load(struct __sk_buff *skb, const struct packet *packet, void *to, __u32 size)
{
	return packet->l4_offset + size <= packet->end &&
	       packet_load_header(skb, packet->l4_offset, to, size);
}

INLINE enum packet_kind parse_icmp(struct __sk_buff *skb, struct packet *packet)
{
	struct echo_header echo;

	if (!parse_load(skb, packet, &echo, sizeof(echo)))
		return PACKET_OPAQUE;
	packet->echo_reply = parse_is_reply(packet, echo.type);
	if (!packet->echo_reply && !parse_is_request(packet, echo.type))
		return parse_error(skb, packet, echo.type);
	if (echo.code != 0)
		return PACKET_OPAQUE;
	parse_identifier(packet, &packet->tuple, echo.identifier);
	return PACKET_TRANSLATABLE;
}

INLINE enum packet_kind parse_udp(struct __sk_buff *skb, struct packet *packet)
{
	struct udphdr udp;

	if (!parse_load(skb, packet, &udp, sizeof(udp)))
		return PACKET_OPAQUE;
	if (bpf_ntohs(udp.len) < sizeof(udp) ||
	    (!packet->fragment && packet->l4_offset + bpf_ntohs(udp.len) > packet->end))
		return PACKET_OPAQUE;
	packet->no_checksum = udp.check == 0;
	packet->tuple.source_port = bpf_ntohs(udp.source);
	packet->tuple.destination_port = bpf_ntohs(udp.dest);
	return PACKET_TRANSLATABLE;
}

INLINE enum packet_kind parse_tcp(struct __sk_buff *skb, struct packet *packet)
{
	struct tcphdr tcp;

	if (!parse_load(skb, packet, &tcp, sizeof(tcp)))
		return PACKET_OPAQUE;
	if (tcp.doff * 4 < sizeof(tcp) || packet->l4_offset + tcp.doff * 4 > packet->end)
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

	if (!parse_load(skb, packet, &sctp, sizeof(sctp)))
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
		return parse_udp(skb, packet);
	if (protocol == PROTOCOL_SCTP)
		return parse_sctp(skb, packet);
	return parse_is_icmp(packet, protocol) ? parse_icmp(skb, packet) : PACKET_OPAQUE;
}

/* Not inlined, so that the callers' stack frames have no headers in them. */
GLOBAL_FUNCTION enum packet_kind parse_packet(struct __sk_buff *skb, struct packet *packet)
{
	struct ip_payload payload = {};
	enum packet_kind kind = PACKET_IGNORED;
	int protocol = -1;

	if (!packet)
		return PACKET_IGNORED;
	if (skb->protocol == bpf_htons(ETH_P_IP))
		kind = parse_ipv4(skb, packet, &payload, &protocol);
	else if (skb->protocol == bpf_htons(ETH_P_IPV6))
		kind = parse_ipv6(skb, packet, &payload, &protocol);
	packet->l4_offset = payload.offset;
	address_copy(packet->sender, packet->tuple.source);
	if (kind == PACKET_TRANSLATABLE && payload.fragment)
		kind = parse_fragment(packet, &payload);
	return kind == PACKET_TRANSLATABLE ? parse_transport(skb, packet, protocol) : kind;
}

/* l3_offset: where the IP header is; 0 on interfaces without a link-layer header. */
INLINE enum packet_kind packet_parse(struct __sk_buff *skb, struct packet *packet, __u16 l3_offset)
{
	__builtin_memset(packet, 0, sizeof(*packet));
	packet->l3_offset = l3_offset;
	/* A tagged frame comes by again, untagged, at the VLAN's device. VID 0 is only a priority.
	 */
	if (skb->vlan_present && (skb->vlan_tci & VLAN_VID_MASK))
		return PACKET_IGNORED;
	return parse_packet(skb, packet);
}

#endif
