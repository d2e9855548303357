/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * packet.h - the only reader of packet bytes.
 *
 * Headers are read where they lie, in the linear part of the skb; where a driver or
 * GRO has left nothing there, bpf_skb_load_bytes() copies them out, which does not care
 * and takes longer. Any bytes may arrive. Where the IP header does
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

/* Only headers that begin before this are looked for in the linear part. */
#ifdef FALLBACKS
#define LINEAR_HEADERS 0 /* all are somewhere else */
#else
#define LINEAR_HEADERS 256
#endif

#define VLAN_VID_MASK 0x0fff
#define IPV4_FRAGMENT_OFFSET 0x1fff
#define IPV4_FRAGMENT 0x3fff /* more fragments, or an offset */
#define IPV6_FRAGMENT_OFFSET 0xfff8
#define IPV6_FRAGMENT 0xfff9
#define IPV6_EXTENSION_HEADERS 6 /* so many: not understood */

#define ICMP_ECHO_REPLY 0
#define ICMP_ECHO_REQUEST 8
#define ICMPV6_ECHO_REQUEST 128
#define ICMPV6_ECHO_REPLY 129
#define ICMP_DEST_UNREACH 3
#define ICMP_TIME_EXCEEDED 11
#define ICMP_PARAMETERPROB 12
#define ICMPV6_DEST_UNREACH 1
#define ICMPV6_PARAMPROB 4

enum packet_kind {
	PACKET_IGNORED,      /* not IP, tagged, malformed IP; addresses of no concern */
	PACKET_OPAQUE,       /* sound IP, but nothing that has a tuple to translate */
	PACKET_FRAGMENT,     /* a later fragment of what may be TCP, UDP or ICMP echo */
	PACKET_TRANSLATABLE, /* TCP, UDP, SCTP or ICMP echo, or the first fragment of it */
	PACKET_ERROR,        /* an ICMP error that quotes such a packet */
};

enum fragment_place {
	NO_FRAGMENT,
	FIRST_FRAGMENT, /* has the ports; its checksum is the whole datagram's */
	LATER_FRAGMENT, /* neither */
} __attribute__((packed));

struct packet {
	/* As the packet has it; direction is the caller's. Of an error: what a packet
	 * back to the sender of the quoted one would have. */
	struct flow_key tuple;
	__u8 sender[16]; /* whose packet it is: its source, also that of an error */
	union {
		__u32 identification; /* of a fragment's datagram */
		struct {
			__u16 quoted_l3_offset; /* of an error, which is no fragment */
			__u16 quoted_l4_offset;
		};
	};
	__u32 end; /* offset of the first byte behind the IP packet */
	__u16 l3_offset;
	__u16 l4_offset;
	__u32 tcp_sequence;
	__u32 tcp_acknowledgment;
	__u32 tcp_sequence_length; /* payload; SYN and FIN count one each */
	__u8 tcp_flags;
	enum fragment_place fragment;
	bool ipv4;
	bool error;
	bool from_endpoint;   /* of an error on its way out: the sender is a container */
	bool no_checksum;     /* UDP over IPv4 may have none (RFC 768) */
	bool echo_reply;      /* ICMP: the side that asked is the destination */
	__u8 hop_limit;       /* or time to live */
	__u8 type_of_service; /* IPv4 */
} __attribute__((aligned(8)));

struct transport_ports {
	__be16 source;
	__be16 destination;
};

/* RFC 9260 3.1; behind it come chunks. */
struct sctp_header {
	struct transport_ports ports;
	__be32 verification_tag;
	__u32 checksum; /* little endian */
};

struct echo_header {
	__u8 type;
	__u8 code;
	__be16 checksum;
	__be16 identifier;
	__be16 sequence;
};

static __always_inline bool packet_protocol_has_ports(enum protocol protocol)
{
	return protocol == PROTOCOL_TCP || protocol == PROTOCOL_UDP || protocol == PROTOCOL_SCTP;
}

/* Of any size, from anywhere in the skb. */
static __always_inline bool packet_load(struct __sk_buff *skb, __u32 offset, void *to, __u32 size)
{
	return bpf_skb_load_bytes(skb, offset, to, size) == 0;
}

/* Bytes of the linear part; NULL: they are not all there. Nothing there is aligned, but to
 * tell so would make bytes of every load. */
static __always_inline void *packet_linear(struct __sk_buff *skb, __u64 offset, __u32 size)
{
	void *at;

	barrier_var(offset); /* or it is another register that is compared */
	if (offset >= LINEAR_HEADERS)
		return NULL;
	at = (void *)(long)skb->data + offset;
	return at + size <= (void *)(long)skb->data_end ? at : NULL;
}

/* The same as packet_load(), for the headers that every packet has. */
static __always_inline bool packet_load_header(struct __sk_buff *skb, __u32 offset, void *to,
					       __u32 size)
{
	const void *header = packet_linear(skb, offset, size);

	if (!header)
		return packet_load(skb, offset, to, size);
	__builtin_memcpy(to, __builtin_assume_aligned(header, 8), size);
	return true;
}

/* struct ipv6hdr, with addresses that can be copied by halves. */
struct ipv6_header {
	__u32 version_class_label;
	__be16 payload_length;
	__u8 next;
	__u8 hop_limit;
	__u64 source[2];
	__u64 destination[2];
};

#define NEXTHDR_HOP 0
#define NEXTHDR_ROUTING 43
#define NEXTHDR_FRAGMENT 44
#define NEXTHDR_DESTINATION 60

/* The first half of every extension header that is walked over. */
struct extension_header {
	__u8 next;
	__u8 length; /* in units of 8 bytes, the first not counted (RFC 8200 4.2) */
	union {
		struct {
			__u8 type;
			__u8 segments_left;
		} routing;
		__be16 fragment;
	};
};

/* What the IP headers say of what they carry. */
struct ip_payload {
	__u32 identification;
	__u16 offset; /* where it is, or where the walk over extension headers has come to */
	__u16 fragment_offset; /* in bytes */
	__u8 first_header;     /* behind the fragment header: all that a later fragment tells */
	bool fragment;         /* not all in one piece */
	bool has_fragment_header;
	__u8 reserved;
};

static __always_inline bool packet_walk_fragment_header(struct __sk_buff *skb,
							struct ip_payload *payload,
							const struct extension_header *header)
{
	__u16 fragment = bpf_ntohs(header->fragment) & IPV6_FRAGMENT;
	__be32 identification;

	if (payload->has_fragment_header || !packet_load(skb, payload->offset + sizeof(*header),
							 &identification, sizeof(identification)))
		return false;
	payload->has_fragment_header = true;
	payload->fragment = fragment != 0;
	payload->fragment_offset = fragment & IPV6_FRAGMENT_OFFSET;
	payload->identification = bpf_ntohl(identification);
	payload->first_header = header->next;
	payload->offset += 8;
	return true;
}

static __always_inline bool packet_is_extension(__u8 protocol)
{
	return protocol == NEXTHDR_HOP || protocol == NEXTHDR_ROUTING ||
	       protocol == NEXTHDR_DESTINATION;
}

static __always_inline bool packet_is_walked_over(__u8 protocol)
{
	return protocol == NEXTHDR_FRAGMENT || packet_is_extension(protocol);
}

/* Walks over one header. Returns the protocol of what comes next, or -1 where that cannot
 * be had: no such header, a route still to be travelled. */
static __always_inline int packet_skip_extension_header(struct __sk_buff *skb,
							struct ip_payload *payload, __u8 protocol)
{
	struct extension_header header;

	if (!packet_load(skb, payload->offset, &header, sizeof(header)))
		return -1;
	if (protocol == NEXTHDR_FRAGMENT)
		return packet_walk_fragment_header(skb, payload, &header) ? header.next : -1;
	if (protocol == NEXTHDR_ROUTING && header.routing.segments_left)
		return -1;
	payload->offset += 8 + header.length * 8;
	return header.next;
}

/* Walks to the transport header, of a later fragment to what is in its place. Returns
 * its protocol, or -1: there is no end of headers, or one that cannot be walked over. */
VERIFIED_ONCE int packet_skip_extension_headers(struct __sk_buff *skb, struct ip_payload *payload,
						__u8 first)
{
	int protocol = first;

	if (!payload)
		return -1;
	for (int i = 0; i < IPV6_EXTENSION_HEADERS; i++) {
		if (protocol < 0 || !packet_is_walked_over(protocol))
			return protocol;
		protocol = packet_skip_extension_header(skb, payload, protocol);
		if (payload->fragment_offset)
			return protocol;
	}
	return -1;
}

/* Most packets have no extension header. */
static __always_inline int packet_find_transport(struct __sk_buff *skb, struct ip_payload *payload,
						 __u8 next)
{
	return packet_is_walked_over(next) ? packet_skip_extension_headers(skb, payload, next)
					   : next;
}

/* The transport header's first eight bytes, all that an error is sure to quote. */
union quoted_transport {
	struct transport_ports ports;
	struct echo_header echo;
};

static __always_inline bool packet_read_quoted_ports(struct __sk_buff *skb, struct packet *packet,
						     struct flow_key *back)
{
	union quoted_transport quoted;
	bool request;

	if (packet->quoted_l4_offset + sizeof(quoted) > packet->end ||
	    !packet_load(skb, packet->quoted_l4_offset, &quoted, sizeof(quoted)))
		return false;
	if (packet_protocol_has_ports(back->protocol)) {
		back->source_port = bpf_ntohs(quoted.ports.destination);
		back->destination_port = bpf_ntohs(quoted.ports.source);
		return true;
	}
	if (back->protocol != (packet->ipv4 ? PROTOCOL_ICMP : PROTOCOL_ICMPV6))
		return false;
	request = quoted.echo.type == (packet->ipv4 ? ICMP_ECHO_REQUEST : ICMPV6_ECHO_REQUEST);
	if (!request && quoted.echo.type != (packet->ipv4 ? ICMP_ECHO_REPLY : ICMPV6_ECHO_REPLY))
		return false;
	/* Whoever asked would get an answer back. */
	packet->echo_reply = request;
	if (request)
		back->destination_port = bpf_ntohs(quoted.echo.identifier);
	else
		back->source_port = bpf_ntohs(quoted.echo.identifier);
	return true;
}

static __always_inline bool packet_read_quoted_ipv4(struct __sk_buff *skb, struct packet *packet,
						    struct flow_key *back)
{
	struct iphdr ip;

	if (packet->quoted_l3_offset + sizeof(ip) > packet->end ||
	    !packet_load(skb, packet->quoted_l3_offset, &ip, sizeof(ip)))
		return false;
	if (ip.version != 4 || ip.ihl * 4 < sizeof(ip))
		return false;
	if (bpf_ntohs(ip.frag_off) & IPV4_FRAGMENT_OFFSET)
		return false; /* what looks like ports is payload */
	address_from_ipv4(back->destination, ip.saddr);
	address_from_ipv4(back->source, ip.daddr);
	back->protocol = ip.protocol;
	packet->quoted_l4_offset = packet->quoted_l3_offset + ip.ihl * 4;
	return true;
}

static __always_inline bool packet_read_quoted_ipv6(struct __sk_buff *skb, struct packet *packet,
						    struct flow_key *back)
{
	struct ip_payload payload = {};
	struct ipv6_header ip;
	int protocol;

	if (packet->quoted_l3_offset + sizeof(ip) > packet->end ||
	    !packet_load(skb, packet->quoted_l3_offset, &ip, sizeof(ip)))
		return false;
	if ((bpf_ntohl(ip.version_class_label) >> 28) != 6)
		return false;
	address_copy(back->destination, (__u8 *)ip.source);
	address_copy(back->source, (__u8 *)ip.destination);
	payload.offset = packet->quoted_l3_offset + sizeof(ip);
	protocol = packet_find_transport(skb, &payload, ip.next);
	if (protocol < 0 || payload.fragment_offset)
		return false;
	packet->quoted_l4_offset = payload.offset;
	back->protocol = protocol;
	return true;
}

static __always_inline bool packet_is_error_type(bool ipv4, __u8 type)
{
	if (ipv4)
		return type == ICMP_DEST_UNREACH || type == ICMP_TIME_EXCEEDED ||
		       type == ICMP_PARAMETERPROB;
	return type >= ICMPV6_DEST_UNREACH && type <= ICMPV6_PARAMPROB;
}

/* An error goes to whoever sent the packet that it quotes, so the flow that it
 * belongs to is found by the way back: the quoted tuple, turned round. */
VERIFIED_ONCE enum packet_kind packet_parse_error(struct __sk_buff *skb, struct packet *packet,
						  __u8 type)
{
	struct flow_key back = {};

	if (!packet || !packet_is_error_type(packet->ipv4, type) || packet->fragment)
		return PACKET_OPAQUE;
	packet->quoted_l3_offset = packet->l4_offset + sizeof(struct echo_header);
	if (packet->ipv4 ? !packet_read_quoted_ipv4(skb, packet, &back)
			 : !packet_read_quoted_ipv6(skb, packet, &back))
		return PACKET_OPAQUE;
	if (!packet_read_quoted_ports(skb, packet, &back) ||
	    !address_equal(back.destination, packet->tuple.destination))
		return PACKET_OPAQUE;
	packet->tuple = back;
	packet->error = true;
	return PACKET_ERROR;
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
	if (!request && !packet->echo_reply)
		return packet_parse_error(skb, packet, echo.type);
	if (echo.code != 0)
		return PACKET_OPAQUE;
	if (request)
		tuple->source_port = bpf_ntohs(echo.identifier);
	else
		tuple->destination_port = bpf_ntohs(echo.identifier);
	return PACKET_TRANSLATABLE;
}

static __always_inline enum packet_kind packet_parse_udp(struct __sk_buff *skb,
							 struct packet *packet)
{
	struct udphdr udp;

	if (!packet_load_header(skb, packet->l4_offset, &udp, sizeof(udp)))
		return PACKET_OPAQUE;
	if (bpf_ntohs(udp.len) < sizeof(udp) ||
	    (!packet->fragment && packet->l4_offset + bpf_ntohs(udp.len) > packet->end))
		return PACKET_OPAQUE;
	packet->no_checksum = udp.check == 0;
	packet->tuple.source_port = bpf_ntohs(udp.source);
	packet->tuple.destination_port = bpf_ntohs(udp.dest);
	return PACKET_TRANSLATABLE;
}

static __always_inline enum packet_kind packet_parse_tcp(struct __sk_buff *skb,
							 struct packet *packet)
{
	struct tcphdr tcp;

	if (!packet_load_header(skb, packet->l4_offset, &tcp, sizeof(tcp)))
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

static __always_inline enum packet_kind packet_parse_sctp(struct __sk_buff *skb,
							  struct packet *packet)
{
	struct sctp_header sctp;

	if (!packet_load(skb, packet->l4_offset, &sctp, sizeof(sctp)))
		return PACKET_OPAQUE;
	packet->tuple.source_port = bpf_ntohs(sctp.ports.source);
	packet->tuple.destination_port = bpf_ntohs(sctp.ports.destination);
	return PACKET_TRANSLATABLE;
}

static __always_inline __u32 packet_header_size(enum protocol protocol)
{
	switch (protocol) {
	case PROTOCOL_TCP:
		return sizeof(struct tcphdr);
	case PROTOCOL_SCTP:
		return sizeof(struct sctp_header);
	default:
		return sizeof(struct udphdr);
	}
}

static __always_inline bool packet_has_transport(const struct packet *packet, int protocol)
{
	return packet_protocol_has_ports(protocol) ||
	       protocol == (packet->ipv4 ? PROTOCOL_ICMP : PROTOCOL_ICMPV6);
}

static __always_inline enum packet_kind packet_parse_transport(struct __sk_buff *skb,
							       struct packet *packet, int protocol)
{
	if (protocol < 0)
		return PACKET_OPAQUE;
	packet->tuple.protocol = protocol;
	if (!packet_has_transport(packet, protocol))
		return PACKET_OPAQUE;
	if (packet->l4_offset + packet_header_size(protocol) > packet->end)
		return PACKET_OPAQUE;
	if (protocol == PROTOCOL_TCP)
		return packet_parse_tcp(skb, packet);
	if (protocol == PROTOCOL_UDP)
		return packet_parse_udp(skb, packet);
	if (protocol == PROTOCOL_SCTP)
		return packet_parse_sctp(skb, packet);
	return packet_parse_echo(skb, packet);
}

/*
 * A later fragment, or PACKET_TRANSLATABLE: the first one, whose transport header is still
 * to be read. The ports must be in that (RFC 7112), and nothing may come later that lies
 * over them: TCP's flags at an offset of 8 bytes (RFC 1858).
 */
static __always_inline enum packet_kind packet_parse_fragment(struct packet *packet,
							      const struct ip_payload *payload)
{
	__u8 first_header = payload->first_header;

	if (!packet_has_transport(packet, first_header) &&
	    (packet->ipv4 || !packet_is_extension(first_header)))
		return PACKET_OPAQUE;
	packet->tuple.protocol = first_header;
	packet->identification = payload->identification;
	packet->fragment = payload->fragment_offset ? LATER_FRAGMENT : FIRST_FRAGMENT;
	if (!payload->fragment_offset)
		return PACKET_TRANSLATABLE;
	if (first_header == PROTOCOL_TCP && payload->fragment_offset == 8) {
		packet->fragment = NO_FRAGMENT;
		return PACKET_OPAQUE;
	}
	return PACKET_FRAGMENT;
}

/* Groups, IPv6 link-local and loopback: nothing there is mapped or masqueraded. */
static __always_inline bool packet_has_odd_address(const struct packet *packet)
{
	const struct flow_key *tuple = &packet->tuple;

	return address_is_group(tuple->destination) || address_is_group(tuple->source) ||
	       address_is_loopback(tuple->destination) || address_is_loopback(tuple->source) ||
	       address_is_ipv6_link_local(tuple->source) ||
	       address_is_ipv6_link_local(tuple->destination);
}

/* These two return PACKET_TRANSLATABLE where all is well, the payload's protocol (or -1) and
 * what else the header says of it. */
static __always_inline enum packet_kind packet_parse_ipv4(struct __sk_buff *skb,
							  struct packet *packet,
							  struct ip_payload *payload, int *protocol)
{
	__u32 header_length;
	__u16 fragment;
	struct iphdr ip;

	if (!packet_load_header(skb, packet->l3_offset, &ip, sizeof(ip)))
		return PACKET_IGNORED;
	header_length = ip.ihl * 4;
	if (ip.version != 4 || header_length < sizeof(ip))
		return PACKET_IGNORED;
	packet->end = packet->l3_offset + bpf_ntohs(ip.tot_len);
	/* BIG TCP (since 6.3) says 0, and so may anybody whose packet is to be segmented. */
	if (ip.tot_len == 0 && (skb->gso_size || skb->len > 0xffff))
		packet->end = skb->len;
	if (packet->end > skb->len || packet->l3_offset + header_length > packet->end)
		return PACKET_IGNORED;
	packet->ipv4 = true;
	packet->hop_limit = ip.ttl;
	packet->type_of_service = ip.tos;
	address_from_ipv4(packet->tuple.source, ip.saddr);
	address_from_ipv4(packet->tuple.destination, ip.daddr);
	fragment = bpf_ntohs(ip.frag_off) & IPV4_FRAGMENT;
	payload->fragment = fragment != 0;
	payload->fragment_offset = (fragment & IPV4_FRAGMENT_OFFSET) << 3;
	payload->identification = bpf_ntohs(ip.id);
	payload->first_header = ip.protocol;
	payload->offset = packet->l3_offset + header_length;
	*protocol = ip.protocol;
	return packet_has_odd_address(packet) ? PACKET_IGNORED : PACKET_TRANSLATABLE;
}

static __always_inline enum packet_kind packet_parse_ipv6(struct __sk_buff *skb,
							  struct packet *packet,
							  struct ip_payload *payload, int *protocol)
{
	struct ipv6_header ip;

	if (!packet_load_header(skb, packet->l3_offset, &ip, sizeof(ip)))
		return PACKET_IGNORED;
	if ((bpf_ntohl(ip.version_class_label) >> 28) != 6)
		return PACKET_IGNORED;
	packet->hop_limit = ip.hop_limit;
	payload->offset = packet->l3_offset + sizeof(ip);
	packet->end = payload->offset + bpf_ntohs(ip.payload_length);
	if (ip.payload_length == 0 && skb->len > 0xffff) /* BIG TCP (since 5.19) says 0 */
		packet->end = skb->len;
	if (packet->end > skb->len)
		return PACKET_IGNORED;
	address_copy(packet->tuple.source, (__u8 *)ip.source);
	address_copy(packet->tuple.destination, (__u8 *)ip.destination);
	/* A v4-mapped address has no business on the wire, and would alias IPv4. The
	 * stack drops such a source, but forwards such a destination. */
	if (address_is_ipv4(packet->tuple.source) || packet_has_odd_address(packet))
		return PACKET_IGNORED;
	if (address_is_ipv4(packet->tuple.destination))
		return PACKET_OPAQUE;
	*protocol = packet_find_transport(skb, payload, ip.next);
	return PACKET_TRANSLATABLE;
}

/* A function of its own keeps what it needs while it reads off its callers' stacks. */
VERIFIED_ONCE enum packet_kind packet_parse_ip(struct __sk_buff *skb, struct packet *packet)
{
	struct ip_payload payload = {};
	enum packet_kind kind = PACKET_IGNORED;
	int protocol = -1;

	if (!packet)
		return PACKET_IGNORED;
	if (skb->protocol == bpf_htons(ETH_P_IP))
		kind = packet_parse_ipv4(skb, packet, &payload, &protocol);
	else if (skb->protocol == bpf_htons(ETH_P_IPV6))
		kind = packet_parse_ipv6(skb, packet, &payload, &protocol);
	packet->l4_offset = payload.offset;
	address_copy(packet->sender, packet->tuple.source);
	if (kind == PACKET_TRANSLATABLE && payload.fragment)
		kind = packet_parse_fragment(packet, &payload);
	return kind == PACKET_TRANSLATABLE ? packet_parse_transport(skb, packet, protocol) : kind;
}

/* l3_offset: where the IP header is; 0 at an interface whose frames begin with it. */
static __always_inline enum packet_kind packet_parse(struct __sk_buff *skb, struct packet *packet,
						     __u16 l3_offset)
{
	__builtin_memset(packet, 0, sizeof(*packet));
	packet->l3_offset = l3_offset;
	/* Seen again, untagged, on the VLAN device. VID 0 is a priority, and no VLAN. */
	if (skb->vlan_present && (skb->vlan_tci & VLAN_VID_MASK))
		return PACKET_IGNORED;
	return packet_parse_ip(skb, packet);
}

/* Is the frame addressed to this MAC? Where it is switched, pkt_type cannot tell. */
static __always_inline bool packet_is_for_mac(struct __sk_buff *skb, const __u8 *mac)
{
	__u8 destination[8] = {};

	if (!packet_load_header(skb, 0, destination, ETH_ALEN))
		return false;
	for (int i = 0; i < ETH_ALEN; i++)
		if (destination[i] != mac[i])
			return false;
	return true;
}

/* IPv4 options, or IPv6 extension headers; a fragment's own is none. */
static __always_inline bool packet_has_options(const struct packet *packet)
{
	__u32 size = packet->l4_offset - packet->l3_offset;

	if (packet->ipv4)
		return size != sizeof(struct iphdr);
	return size != sizeof(struct ipv6_header) && (!packet->fragment || size != 48);
}

static __always_inline bool packet_begins_tcp(const struct packet *packet)
{
	return (packet->tcp_flags & (TCP_SYN | TCP_ACK | TCP_RST | TCP_FIN)) == TCP_SYN;
}

#endif
