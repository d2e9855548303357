/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * packet.h - IP packets as the test thinks of them: written to bytes, with checksums, and read from
 * them, with checksums verified. Every address is IPv6; IPv4 is v4-mapped.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_PAYLOAD 2000
#define MAX_PACKET (MAX_PAYLOAD + 100)

enum { FIN = 1, SYN = 2, RST = 4, PSH = 8, ACK = 16 };

/* What ICMP and ICMPv6 say with different numbers */
enum icmp_kind {
	ICMP_NONE,
	ICMP_REQUEST,
	ICMP_REPLY,
	ICMP_PORT_UNREACHABLE,
	ICMP_TIME_EXCEEDED,
	ICMP_TOO_BIG,
	ICMP_HOST_UNREACHABLE,
	ICMP_OTHER,
};

struct packet {
	struct in6_addr source, destination;
	uint8_t protocol; /* IPPROTO_ICMP is ICMPv6 in IPv6 */
	/* Of an echo request `source_port` is the identifier, of a reply `destination_port`. */
	uint16_t source_port, destination_port;
	uint8_t flags; /* of TCP */
	uint32_t sequence, acknowledged;
	enum icmp_kind icmp;
	uint16_t id; /* IPv4's identification, IPv6's flow label */
	uint8_t ttl, tos;
	const char *flaw; /* What is wrong with the bytes that it was read from, or NULL */
	size_t size;
	uint8_t payload[MAX_PAYLOAD]; /* What follows the header. Of an ICMP error, the quote */
};

/* A part of a packet's transport bytes; a whole packet is a part at 0 without more. */
struct part {
	size_t offset, size;
	bool more;
};

bool is_v4(const struct in6_addr *address);
bool same_address(const struct in6_addr *a, const struct in6_addr *b);
struct in6_addr address_of(const char *text);

bool is_icmp_error(const struct packet *packet);

/* The header of the transport, and payload, with its checksum. Returns the size. */
size_t packet_transport(const struct packet *packet, uint8_t *bytes);
/* An IP packet with a part of them. `whole` is their size. */
size_t packet_part(const struct packet *packet, const uint8_t *transport, size_t whole,
		   const struct part *part, uint8_t *bytes);
size_t packet_whole(const struct packet *packet, uint8_t *bytes);

/* What packet_headers finds before the transport's bytes */
struct headers {
	struct packet packet; /* addresses, protocol, id, ttl, tos */
	struct part part;
	uint32_t fragment_id;
	const uint8_t *bytes; /* of the part */
};

/* Reads the headers of IP. False: this is not IP. */
bool packet_headers(struct headers *headers, const uint8_t *bytes, size_t size);
/* Reads the transport's header. `partial`: the sender has left the checksum to the device. A quote
 * may be cut anywhere: its checksum is not verified. */
void packet_read_transport(struct packet *packet, const uint8_t *bytes, size_t size, bool partial,
			   bool quote);
/* What an ICMP error quotes. False: no packet that can be read */
bool packet_quoted(struct packet *quoted, const struct packet *error);

/* "TCP 192.0.2.10:40000 > 192.0.2.1:8080 SA, 10 bytes" */
#define PACKET_TEXT 200
const char *packet_text(const struct packet *packet, char *text);
