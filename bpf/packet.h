/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* packet.h - what is known about a packet, and the only functions that read its bytes. */
#pragma once

#include "address.h"

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_ACK 0x10

#define VLAN_VID_MASK 0x0fff

/* Headers from this offset on are not read from the linear part. */
#ifdef FALLBACKS
#define LINEAR_HEADERS 0 /* tests: never read or written in place */
#else
#define LINEAR_HEADERS 256
#endif

/* A packet's source and destination as a hook sees them. */
struct tuple {
	__u8 source[16];
	__u8 destination[16];
	/* ICMP echo and timestamp: the requester's port is the identifier, the other is 0.
	 * Protocols without ports: both are 0. */
	__u16 source_port;
	__u16 destination_port;
	enum protocol protocol;
	enum direction direction;
	__u8 reserved[2];
} __attribute__((aligned(8)));

enum packet_kind {
	PACKET_IGNORED,  /* not IP, tagged, malformed IP; addresses that are never translated */
	PACKET_OPAQUE,   /* valid IP, but without a tuple that could be translated */
	PACKET_FRAGMENT, /* a later fragment of what may be the next kind */
	/* TCP, UDP, UDP-Lite, SCTP, ICMP echo or timestamp, a protocol without ports, or its first
	 * fragment */
	PACKET_TRANSLATABLE,
	PACKET_ERROR, /* an ICMP error that quotes such a packet */
};

enum fragment_place {
	NO_FRAGMENT,
	FIRST_FRAGMENT, /* has the ports; its checksum covers the whole datagram */
	LATER_FRAGMENT, /* has neither ports nor checksum */
} __attribute__((packed));

struct packet {
	/* ICMP error: the tuple of a reply to the quoted packet. Its direction says which side is
	 * translated: what a container sends is outward, until it turns out to begin a connection.
	 */
	struct tuple tuple;
	__u8 sender[16]; /* the packet's own source address, also of an ICMP error */
	union {
		__u32 identification; /* of a fragment's datagram */
		struct {
			__u16 quoted_l3_offset; /* of an ICMP error, which is no fragment */
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
	bool leaving;         /* at egress */
	bool renewed;         /* its connection's path, or way out of the stack, was asked for it */
	bool asked;           /* for that routing was asked: scratch has the answer */
	bool of_many;         /* its memo has counted as many as it can */
	bool from_endpoint;   /* of an ICMP error on its way out: a container sent it */
	bool no_checksum;     /* UDP over IPv4 may have none (RFC 768) */
	bool echo_reply;      /* or a timestamp reply: the identifier is the destination's port */
	__u8 hop_limit;       /* or time to live */
	__u8 type_of_service; /* IPv4 */
	__u16 told;           /* at egress: by the hooks before (tc_index.h) */
	__u32 seal;           /* at egress: seal.h */
} __attribute__((aligned(8)));

INLINE bool packet_load(struct __sk_buff *skb, __u32 offset, void *to, __u32 size)
{
	return bpf_skb_load_bytes(skb, offset, to, size) == 0;
}

/* Returns NULL where not all of these bytes are in the linear part. void *, so that the compiler
 * does not load unaligned headers byte by byte. */
INLINE void *packet_linear(struct __sk_buff *skb, __u64 offset, __u32 size)
{
	void *at;

	barrier_var(offset); /* without this the compiler compares another register */
	if (offset >= LINEAR_HEADERS)
		return NULL;
	at = (void *)(long)skb->data + offset;
	return at + size <= (void *)(long)skb->data_end ? at : NULL;
}

/* Faster for headers, which are in the linear part unless a driver or GRO has put them elsewhere.
 */
INLINE bool packet_load_header(struct __sk_buff *skb, __u32 offset, void *to, __u32 size)
{
	const void *header = packet_linear(skb, offset, size);

	if (!header)
		return packet_load(skb, offset, to, size);
	__builtin_memcpy(to, __builtin_assume_aligned(header, 8), size);
	return true;
}

/* Reads the packet's own destination, which of an ICMP error is not in the tuple. */
INLINE bool packet_load_destination(struct __sk_buff *skb, __u32 l3_offset, bool ipv4,
				    struct address *destination)
{
	__be32 word;

	if (!ipv4)
		return packet_load_header(skb, l3_offset + 24, destination, sizeof(*destination));
	if (!packet_load_header(skb, l3_offset + 16, &word, sizeof(word)))
		return false;
	address_from_ipv4(destination->bytes, word);
	return true;
}

INLINE bool packet_protocol_has_ports(enum protocol protocol)
{
	return protocol == PROTOCOL_TCP || protocol == PROTOCOL_UDP || protocol == PROTOCOL_SCTP ||
	       protocol == PROTOCOL_UDPLITE;
}

INLINE bool packet_protocol_is_icmp(enum protocol protocol)
{
	return protocol == PROTOCOL_ICMP || protocol == PROTOCOL_ICMPV6;
}

/* Of these protocols more than the addresses would have to be translated, or nothing can be: DCCP
 * has ports, AH's check covers the addresses, and the others are headers of IPv6 itself. A table,
 * because compilers make a shift of many comparisons, which 7.2 cannot trace (parse.h). */
static const volatile bool has_more_than_addresses[256] = {
	[PROTOCOL_TCP] = true,
	[PROTOCOL_UDP] = true,
	[PROTOCOL_UDPLITE] = true,
	[PROTOCOL_SCTP] = true,
	[PROTOCOL_ICMP] = true,
	[PROTOCOL_ICMPV6] = true,
	[33] = true,  /* DCCP */
	[51] = true,  /* AH */
	[0] = true,   /* hop-by-hop options */
	[43] = true,  /* routing */
	[44] = true,  /* fragment */
	[59] = true,  /* no next header */
	[60] = true,  /* destination options */
	[135] = true, /* Mobility, HIP and Shim6 are extension headers, too (RFC 7045 4). */
	[139] = true,
	[140] = true,
};

/* Returns whether the addresses are all that there is to translate: GRE, ESP, IP in IP, ... */
INLINE bool packet_protocol_is_portless(enum protocol protocol)
{
	return !has_more_than_addresses[(__u8)protocol];
}

/* Returns whether it is UDP or UDP-Lite, which send no checksum of 0. */
INLINE bool packet_protocol_is_udp(enum protocol protocol)
{
	return protocol == PROTOCOL_UDP || protocol == PROTOCOL_UDPLITE;
}

/* Returns the interface by which the packet arrived. At a device that limits bandwidth,
 * skb->ifindex is another one. */
INLINE __u32 packet_arrived_by(struct __sk_buff *skb)
{
	return skb->ingress_ifindex ?: skb->ifindex;
}

/* Not inlined, for its stack. mac: in the first six bytes, the others are zero. */
GLOBAL_FUNCTION bool packet_has_destination_mac(struct __sk_buff *skb, __u64 mac)
{
	__u64 destination = 0;

	return packet_load_header(skb, 0, &destination, ETH_ALEN) && destination == mac;
}

/* Returns whether the frame is addressed to this MAC. For a frame that a bridge forwards, pkt_type
 * cannot tell. */
INLINE bool packet_is_for_mac(struct __sk_buff *skb, const __u8 *mac)
{
	__u64 wanted = 0;

	__builtin_memcpy(&wanted, mac, ETH_ALEN);
	return packet_has_destination_mac(skb, wanted);
}

/* Returns whether it has IPv4 options or IPv6 extension headers, apart from a fragment header. */
INLINE bool packet_has_options(const struct packet *packet)
{
	__u32 size = packet->l4_offset - packet->l3_offset;

	if (packet->ipv4)
		return size != sizeof(struct iphdr);
	return size != sizeof(struct ipv6hdr) && (!packet->fragment || size != 48);
}

/* Returns whether no TCP of today sends such flags, and no peer acts on them: none of SYN, ACK and
 * RST, or SYN with FIN. */
INLINE bool packet_tcp_is_odd(const struct packet *packet)
{
	return !(packet->tcp_flags & (TCP_SYN | TCP_ACK | TCP_RST)) ||
	       (packet->tcp_flags & (TCP_SYN | TCP_FIN)) == (TCP_SYN | TCP_FIN);
}

INLINE bool packet_begins_tcp(const struct packet *packet)
{
	return (packet->tcp_flags & (TCP_SYN | TCP_ACK | TCP_RST | TCP_FIN)) == TCP_SYN;
}

INLINE bool mac_is_known(const __u8 *mac)
{
	return mac[0] | mac[1] | mac[2] | mac[3] | mac[4] | mac[5];
}

/* Returns whether the next hop's MAC is known. */
INLINE bool translation_has_frame(const struct translation *translation)
{
	return mac_is_known(translation->frame_destination);
}

INLINE bool translation_changes_ports(const struct translation *translation,
				      const struct tuple *tuple)
{
	bool in = tuple->direction == DIRECTION_IN;

	return translation->port != (in ? tuple->destination_port : tuple->source_port) ||
	       translation->peer_port != (in ? tuple->source_port : tuple->destination_port);
}

INLINE bool translation_changes(const struct translation *translation, const struct tuple *tuple)
{
	const __u8 *old = tuple->direction == DIRECTION_IN ? tuple->destination : tuple->source;

	return translation_changes_ports(translation, tuple) ||
	       !address_equal(translation->address, old);
}
