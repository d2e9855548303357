/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * packet.h - the only reader of packet bytes.
 *
 * Headers are copied out with bpf_skb_load_bytes(), which does not care where
 * in the skb they lie: direct access sees the linear part only, and a driver or
 * GRO may leave nothing there. Any bytes may arrive. Where the IP header does
 * not add up the packet is IGNORED, that is passed untouched, for the IP stack
 * drops it; where only what it carries does not, it is OPAQUE: the stack would
 * forward it, with a container's address.
 */
#ifndef BPF_PORTMAP_PACKET_H
#define BPF_PORTMAP_PACKET_H

#include "address.h"
#include "maps.h"

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_ACK 0x10

#define IPV4_FRAGMENT 0x3fff     /* more fragments, or an offset */
#define IPV6_EXTENSION_HEADERS 6 /* more than this many: not understood */

#define ICMP_ECHO_REPLY 0
#define ICMP_ECHO_REQUEST 8
#define ICMPV6_ECHO_REQUEST 128
#define ICMPV6_ECHO_REPLY 129

enum packet_kind {
	PACKET_IGNORED,     /* not IP, tagged, malformed IP; addresses of no concern */
	PACKET_OPAQUE,      /* sound IP, but nothing that has a tuple to translate */
	PACKET_TRANSLATABLE /* TCP, UDP or ICMP echo */
};

struct packet {
	struct flow_key tuple; /* as the packet has it; direction is the caller's */
	__u16 l3_offset;
	__u16 l4_offset;
	__u8 tcp_flags;
	bool ipv4;
	bool echo_reply; /* ICMP: the side that asked is the destination */
};

struct transport_ports {
	__be16 source;
	__be16 destination;
};

struct echo_header {
	__u8 type;
	__u8 code;
	__be16 checksum;
	__be16 identifier;
	__be16 sequence;
};

static __always_inline bool packet_load(struct __sk_buff *skb, __u32 offset, void *to, __u32 size)
{
	return bpf_skb_load_bytes(skb, offset, to, size) == 0;
}

static __always_inline enum packet_kind packet_parse_echo(struct __sk_buff *skb,
							  struct packet *packet)
{
	struct flow_key *tuple = &packet->tuple;
	struct echo_header echo;
	bool request;

	if (!packet_load(skb, packet->l4_offset, &echo, sizeof(echo)))
		return PACKET_OPAQUE;
	request = echo.type == (packet->ipv4 ? ICMP_ECHO_REQUEST : ICMPV6_ECHO_REQUEST);
	packet->echo_reply = echo.type == (packet->ipv4 ? ICMP_ECHO_REPLY : ICMPV6_ECHO_REPLY);
	if ((!request && !packet->echo_reply) || echo.code != 0)
		return PACKET_OPAQUE;
	if (request)
		tuple->source_port = bpf_ntohs(echo.identifier);
	else
		tuple->destination_port = bpf_ntohs(echo.identifier);
	return PACKET_TRANSLATABLE;
}

static __always_inline enum packet_kind packet_parse_udp(struct __sk_buff *skb,
							 struct packet *packet, __u32 end)
{
	struct udphdr udp;

	if (!packet_load(skb, packet->l4_offset, &udp, sizeof(udp)))
		return PACKET_OPAQUE;
	if (bpf_ntohs(udp.len) < sizeof(udp) || packet->l4_offset + bpf_ntohs(udp.len) > end)
		return PACKET_OPAQUE;
	packet->tuple.source_port = bpf_ntohs(udp.source);
	packet->tuple.destination_port = bpf_ntohs(udp.dest);
	return PACKET_TRANSLATABLE;
}

static __always_inline enum packet_kind packet_parse_tcp(struct __sk_buff *skb,
							 struct packet *packet, __u32 end)
{
	struct tcphdr tcp;

	if (!packet_load(skb, packet->l4_offset, &tcp, sizeof(tcp)))
		return PACKET_OPAQUE;
	if (tcp.doff * 4 < sizeof(tcp) || packet->l4_offset + tcp.doff * 4 > end)
		return PACKET_OPAQUE;
	packet->tuple.source_port = bpf_ntohs(tcp.source);
	packet->tuple.destination_port = bpf_ntohs(tcp.dest);
	packet->tcp_flags = ((__u8 *)&tcp)[13];
	return PACKET_TRANSLATABLE;
}

/* end: offset of the first byte behind the IP packet. */
static __always_inline enum packet_kind packet_parse_transport(struct __sk_buff *skb,
							       struct packet *packet, __u8 protocol,
							       __u32 end)
{
	__u32 least = protocol == PROTOCOL_TCP ? sizeof(struct tcphdr) : sizeof(struct udphdr);

	packet->tuple.protocol = protocol;
	if (protocol != PROTOCOL_TCP && protocol != PROTOCOL_UDP &&
	    protocol != (packet->ipv4 ? PROTOCOL_ICMP : PROTOCOL_ICMPV6))
		return PACKET_OPAQUE;
	if (packet->l4_offset + least > end)
		return PACKET_OPAQUE;
	if (protocol == PROTOCOL_TCP)
		return packet_parse_tcp(skb, packet, end);
	if (protocol == PROTOCOL_UDP)
		return packet_parse_udp(skb, packet, end);
	return packet_parse_echo(skb, packet);
}

/* Groups, IPv6 link-local and loopback: nothing there is mapped or masqueraded. */
static __always_inline bool packet_has_odd_address(const struct packet *packet)
{
	const struct flow_key *tuple = &packet->tuple;

	return address_is_group(tuple->destination) || address_is_loopback(tuple->destination) ||
	       address_is_loopback(tuple->source) || address_is_ipv6_link_local(tuple->source) ||
	       address_is_ipv6_link_local(tuple->destination);
}

static __always_inline enum packet_kind packet_parse_ipv4(struct __sk_buff *skb,
							  struct packet *packet)
{
	__u32 header_length, end;
	struct iphdr ip;

	if (!packet_load(skb, packet->l3_offset, &ip, sizeof(ip)))
		return PACKET_IGNORED;
	header_length = ip.ihl * 4;
	if (ip.version != 4 || header_length < sizeof(ip))
		return PACKET_IGNORED;
	end = packet->l3_offset + bpf_ntohs(ip.tot_len);
	if (ip.tot_len == 0 && skb->len > 0xffff) /* BIG TCP (since 6.3) says 0 */
		end = skb->len;
	if (end > skb->len || packet->l3_offset + header_length > end)
		return PACKET_IGNORED;
	packet->ipv4 = true;
	packet->l4_offset = packet->l3_offset + header_length;
	address_from_ipv4(packet->tuple.source, ip.saddr);
	address_from_ipv4(packet->tuple.destination, ip.daddr);
	if (packet_has_odd_address(packet))
		return PACKET_IGNORED;
	if (bpf_ntohs(ip.frag_off) & IPV4_FRAGMENT)
		return PACKET_OPAQUE;
	return packet_parse_transport(skb, packet, ip.protocol, end);
}

#define NEXTHDR_HOP 0
#define NEXTHDR_ROUTING 43
#define NEXTHDR_DESTINATION 60

/* Walks to the transport header. Returns its protocol, or -1 where it cannot
 * be had: a fragment, no next header, a route still to be travelled. */
static __always_inline int packet_skip_extension_headers(struct __sk_buff *skb,
							 struct packet *packet, __u8 protocol)
{
	struct {
		__u8 next;
		__u8 length; /* in units of 8 bytes, the first not counted (RFC 8200 4.2) */
		__u8 type;
		__u8 segments_left;
	} extension;

	for (int i = 0; i < IPV6_EXTENSION_HEADERS; i++) {
		if (protocol != NEXTHDR_HOP && protocol != NEXTHDR_ROUTING &&
		    protocol != NEXTHDR_DESTINATION)
			return protocol;
		if (!packet_load(skb, packet->l4_offset, &extension, sizeof(extension)))
			return -1;
		if (protocol == NEXTHDR_ROUTING && extension.segments_left)
			return -1;
		protocol = extension.next;
		packet->l4_offset += 8 + extension.length * 8;
	}
	return -1;
}

static __always_inline enum packet_kind packet_parse_ipv6(struct __sk_buff *skb,
							  struct packet *packet)
{
	struct {
		__u32 version_class_label;
		__be16 payload_length;
		__u8 next;
		__u8 hop_limit;
		__u64 source[2];
		__u64 destination[2];
	} ip;
	__u32 end;
	int protocol;

	if (!packet_load(skb, packet->l3_offset, &ip, sizeof(ip)))
		return PACKET_IGNORED;
	if ((bpf_ntohl(ip.version_class_label) >> 28) != 6)
		return PACKET_IGNORED;
	packet->l4_offset = packet->l3_offset + sizeof(ip);
	end = packet->l4_offset + bpf_ntohs(ip.payload_length);
	if (ip.payload_length == 0 && skb->len > 0xffff) /* BIG TCP (since 5.19) says 0 */
		end = skb->len;
	if (end > skb->len)
		return PACKET_IGNORED;
	address_copy(packet->tuple.source, (__u8 *)ip.source);
	address_copy(packet->tuple.destination, (__u8 *)ip.destination);
	/* A v4-mapped address has no business on the wire, and would alias IPv4. */
	if (address_is_ipv4(packet->tuple.source) || address_is_ipv4(packet->tuple.destination) ||
	    packet_has_odd_address(packet))
		return PACKET_IGNORED;
	protocol = packet_skip_extension_headers(skb, packet, ip.next);
	if (protocol < 0)
		return PACKET_OPAQUE;
	return packet_parse_transport(skb, packet, protocol, end);
}

static __always_inline enum packet_kind packet_parse(struct __sk_buff *skb, struct packet *packet)
{
	__builtin_memset(packet, 0, sizeof(*packet));
	packet->l3_offset = ETH_HLEN;
	if (skb->vlan_present)
		return PACKET_IGNORED; /* seen again, untagged, on the VLAN device */
	if (skb->protocol == bpf_htons(ETH_P_IP))
		return packet_parse_ipv4(skb, packet);
	if (skb->protocol == bpf_htons(ETH_P_IPV6))
		return packet_parse_ipv6(skb, packet);
	return PACKET_IGNORED;
}

/* Is the frame addressed to this MAC? Where it is switched, pkt_type cannot tell. */
static __always_inline bool packet_is_for_mac(struct __sk_buff *skb, const __u8 *mac)
{
	__u8 destination[8] = {};

	if (!packet_load(skb, 0, destination, ETH_ALEN))
		return false;
	for (int i = 0; i < ETH_ALEN; i++)
		if (destination[i] != mac[i])
			return false;
	return true;
}

static __always_inline bool packet_begins_tcp(const struct packet *packet)
{
	return (packet->tcp_flags & (TCP_SYN | TCP_ACK | TCP_RST | TCP_FIN)) == TCP_SYN;
}

#endif
