/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* frame.h - packets as a row describes them, and the bytes built from that. */
#ifndef BPF_PORTMAP_TESTS_FRAME_H
#define BPF_PORTMAP_TESTS_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAME_SIZE 2048
#define MAC_SIZE 6
#define TIME_TO_LIVE 61 /* of packets that do not say */

#define FIN 0x01
#define SYN 0x02
#define RST 0x04
#define PSH 0x08
#define ACK 0x10

/* A port which the program chooses: taken from the packet it puts out, checked,
 * and remembered for the rows that go on from there. */
#define CHOSEN (-1)

enum mac {
	MAC_USUAL, /* what a frame at this hook of this device is addressed to */
	MAC_UPLINK,
	MAC_BRIDGE,
	MAC_CONTAINER_TWO,
	MAC_FOREIGN,
	MAC_BROADCAST,
	MAC_MULTICAST,
	MAC_CONTAINER_ONE,
	MAC_CONTAINER_ROUTED,
	MAC_ROUTED,    /* of the host's side of its veth */
	MAC_NEIGHBOUR, /* the router behind the uplink */
	MAC_NONE,      /* all zero */
	MAC_VETH_ONE,  /* of the host's side of its veth, a port of the bridge */
};

enum fragmentation {
	NOT_A_FRAGMENT,
	FIRST_FRAGMENT,
	LATER_FRAGMENT,
	ATOMIC_FRAGMENT, /* IPv6: a fragment header, but all in one piece (RFC 6946) */
};

/* One packet. All zero: no packet. What is left out is what a sound packet has. */
struct packet {
	int protocol; /* IPPROTO_*; its header is built for TCP, UDP, SCTP, ICMP, ICMPv6 */
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

	enum mac to_mac;
	enum mac from_mac;
	unsigned int hop_limit;       /* or time to live; 0: TIME_TO_LIVE */
	unsigned int type_of_service; /* IPv4 */
	unsigned int priority_tags;   /* so many tags of VID 0 in the bytes, before that */
	bool vlan;                    /* an 802.1Q tag in the bytes */
	unsigned int ethertype;       /* instead of the right one */
	unsigned int ipv4_options;    /* bytes of them, a multiple of 4 */
	/* IPv6, a letter each: h(op-by-hop), d(estination), D, a long one, r(outing), n(o next),
	 * and f(ragment) where the fragment header is not to be the last */
	const char *extensions;
	unsigned int segments_left; /* in the routing header */
	enum fragmentation fragment;
	unsigned int identification; /* of its datagram; 0: the usual one */
	/* Of the datagram described here only these bytes, counted from the transport header;
	 * more follow unless they are its last. piece_size 0: all, whatever its header says. */
	unsigned int piece_offset;
	unsigned int piece_size;
	unsigned int payload;      /* bytes behind the transport header; 0: an odd few */
	bool empty;                /* no payload */
	unsigned int padding;      /* bytes behind the IP packet, as Ethernet pads */
	unsigned int segment_size; /* into which the kernel is to cut it; 0: it is not */

	/* An ICMP error instead of an echo: the packet it quotes, in place of a payload */
	const struct packet *quotes;
	unsigned int quoted_bytes; /* of the quoted IP packet; 0: all of it */
	bool quotes_eight;         /* of its transport only the first 8 bytes (RFC 792) */
	uint32_t icmp_rest;        /* what stands behind the checksum: MTU, pointer */

	/* Lies */
	int ip_length_off;        /* added to the total or payload length */
	bool without_ip_length;   /* that is 0, as BIG TCP has it */
	int udp_length_off;       /* added to the UDP length */
	unsigned int ip_version;  /* instead of 4 or 6 */
	unsigned int ihl;         /* in words, instead of the right one */
	unsigned int data_offset; /* TCP's, in words, instead of 5 */
	bool without_transport;   /* the packet ends behind the ports */
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

/* Builds the bytes; every checksum is computed over the whole packet. The MACs
 * are 6 bytes each. A wrong description ends the program. */
void frame_build(struct frame *frame, const struct packet *packet, const uint8_t *to_mac,
		 const uint8_t *from_mac);

/* The same packet where there is no link header. */
void frame_strip_ethernet(struct frame *frame);

/* What a frame has as source port or echo identifier, host byte order. */
uint16_t frame_source_port(const struct frame *frame);

bool frame_equal(const struct frame *a, const struct frame *b);

/* Prints both as TAP diagnostics, differing bytes marked and named. */
void frame_print_difference(const struct frame *expected, const struct frame *got);

#endif
