/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* frame.h - descriptions of packets, and the bytes built from them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAME_SIZE 2048
#define MAC_SIZE 6
#define TIME_TO_LIVE 61 /* unless a packet has another one */

#define FIN 0x01
#define SYN 0x02
#define RST 0x04
#define PSH 0x08
#define ACK 0x10

/* A port that the program chooses: it is read from the output, checked, and kept for the rows that
 * continue. */
#define CHOSEN (-1)

enum mac {
	MAC_USUAL, /* the usual destination at this hook of this device */
	MAC_UPLINK,
	MAC_BRIDGE,
	MAC_CONTAINER_TWO,
	MAC_FOREIGN,
	MAC_BROADCAST,
	MAC_MULTICAST,
	MAC_CONTAINER_ONE,
	MAC_CONTAINER_ROUTED,
	MAC_ROUTED,    /* the host's end of its veth */
	MAC_NEIGHBOUR, /* the router behind the uplink */
	MAC_NONE,      /* all zero */
	MAC_VETH_ONE,  /* the host's end of its veth, a port of the bridge */
};

enum fragmentation {
	NOT_A_FRAGMENT,
	FIRST_FRAGMENT,
	LATER_FRAGMENT,
	ATOMIC_FRAGMENT, /* IPv6: a fragment header on an unfragmented packet (RFC 6946) */
};

/* One packet. All zero: no packet. Members left out get the values of a valid packet. */
struct packet {
	int protocol; /* IPPROTO_*; its header is built for TCP, UDP(-Lite), SCTP, ICMP, ICMPv6 */
	const char *from;
	int from_port; /* host byte order; of an echo: the identifier */
	const char *to;
	int to_port;
	unsigned int tcp_flags;
	uint32_t sequence; /* TCP; 0: some number */
	uint32_t acknowledgment;
	unsigned int icmp_type;
	unsigned int icmp_code;
	bool without_checksum; /* UDP over IPv4, SCTP: the checksum field is 0 */
	unsigned int coverage; /* UDP-Lite: bytes that the checksum covers; 0: all */

	enum mac to_mac;
	enum mac from_mac;
	unsigned int hop_limit;       /* or time to live; 0: TIME_TO_LIVE */
	unsigned int type_of_service; /* IPv4 */
	unsigned int priority_tags;   /* so many tags of VID 0 before that one */
	bool vlan;                    /* an 802.1Q tag in the bytes */
	unsigned int ethertype;       /* instead of the right one */
	unsigned int ipv4_options;    /* bytes, a multiple of 4 */
	/* IPv6, one letter each: h(op-by-hop), d(estination), D: a long one, r(outing), n(o next),
	 * f(ragment): the place of the fragment header, by default the last */
	const char *extensions;
	unsigned int segments_left; /* in the routing header */
	enum fragmentation fragment;
	unsigned int identification; /* of its datagram; 0: the usual one */
	/* Only these bytes of the datagram, counted from the transport header; the header says that
	 * more follow unless they are the last. piece_size 0: all, whatever the header says. */
	unsigned int piece_offset;
	unsigned int piece_size;
	unsigned int payload;      /* bytes after the transport header; 0: a small odd number */
	bool empty;                /* no payload */
	unsigned int padding;      /* bytes after the IP packet, as Ethernet pads */
	unsigned int segment_size; /* for segmentation by the kernel (GSO); 0: none */

	/* An ICMP error instead of an echo: the packet that it quotes in place of a payload */
	const struct packet *quotes;
	unsigned int quoted_bytes; /* of the quoted IP packet; 0: all of it */
	bool quotes_eight;         /* only 8 bytes of the transport header (RFC 792) */
	uint32_t icmp_rest;        /* the field after the checksum: MTU, pointer */

	/* Wrong values */
	int ip_length_off;        /* added to the total or payload length */
	bool without_ip_length;   /* 0, as with BIG TCP */
	bool damaged_header;      /* a wrong checksum of the IPv4 header */
	int udp_length_off;       /* added to the UDP length */
	unsigned int ip_version;  /* instead of 4 or 6 */
	unsigned int ihl;         /* in words, instead of the right one */
	unsigned int data_offset; /* TCP's, in words, instead of 5 */
	bool without_transport;   /* the packet ends after the ports */
};

struct frame {
	uint8_t bytes[FRAME_SIZE];
	size_t length;
	size_t network; /* offsets of the headers */
	size_t transport;
	size_t fragment_header; /* of IPv6 */
	unsigned int segment_size;
	bool ipv4;
	int protocol;
};

/* Builds the bytes; each checksum is computed over the whole packet. A wrong description ends the
 * program. */
void frame_build(struct frame *frame, const struct packet *packet, const uint8_t *to_mac,
		 const uint8_t *from_mac);

/* Removes the link header. */
void frame_strip_ethernet(struct frame *frame);

/* The source port or echo identifier, in host byte order */
uint16_t frame_source_port(const struct frame *frame);

bool frame_equal(const struct frame *a, const struct frame *b);

/* Prints both as TAP diagnostics, differing bytes marked and named. */
void frame_print_difference(const struct frame *expected, const struct frame *got);
