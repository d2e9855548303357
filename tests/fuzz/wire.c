/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* wire.c - parses frames and computes checksums. */
#include "wire.h"

#include "../sums.h"

#define ETHERNET_SIZE 14
#define MOST_EXTENSIONS 5
#define SCTP_HEADER 12

static uint32_t read32(const struct frame *frame, size_t offset)
{
	return (uint32_t)read16(frame, offset) << 16 | read16(frame, offset + 2);
}

static void copy_ipv4(uint8_t *address, const uint8_t *bytes)
{
	memset(address, 0, 10);
	memset(address + 10, 0xff, 2);
	memcpy(address + 12, bytes, 4);
}

/* Multicast, broadcast, loopback, IPv6 link-local */
static bool is_never_translated(const uint8_t *address)
{
	static const uint8_t loopback[16] = {[15] = 1};

	if (!address_is_ipv4(address))
		return !memcmp(address, loopback, 16) || address[0] == 0xff ||
		       (address[0] == 0xfe && address[1] >> 6 == 2);
	return address[12] == 127 || address[12] >> 4 == 0xe ||
	       !memcmp(address + 12, "\xff\xff\xff\xff", 4);
}

/* The fixed part of an IPv4 header. -1: there is none. */
static int read_ipv4(const struct frame *frame, size_t end, struct wire_header *header)
{
	const uint8_t *ip = frame->bytes + header->network;
	size_t length;

	if (header->network + 20 > end || ip[0] >> 4 != 4)
		return -1;
	length = (ip[0] & 15u) * 4u;
	if (length < 20)
		return -1;
	copy_ipv4(header->source, ip + 12);
	copy_ipv4(header->destination, ip + 16);
	header->protocol = ip[9];
	header->transport = header->network + length;
	return 0;
}

static int read_ipv6(const struct frame *frame, size_t end, struct wire_header *header)
{
	const uint8_t *ip = frame->bytes + header->network;

	if (header->network + 40 > end || ip[0] >> 4 != 6)
		return -1;
	memcpy(header->source, ip + 8, 16);
	memcpy(header->destination, ip + 24, 16);
	header->protocol = ip[6];
	header->transport = header->network + 40;
	return 0;
}

static bool is_extension(uint8_t protocol)
{
	return protocol == IPPROTO_HOPOPTS || protocol == IPPROTO_ROUTING ||
	       protocol == IPPROTO_DSTOPTS;
}

struct fragment_header {
	bool found;
	uint16_t bits; /* offset and "more"; 0: all in one piece */
	uint32_t identification;
	uint8_t next;
};

static int take_fragment_header(const struct frame *frame, struct wire_header *header,
				struct fragment_header *fragment)
{
	size_t offset = header->transport;

	if (fragment->found || offset + 8 > frame->length)
		return -1;
	fragment->found = true;
	fragment->next = frame->bytes[offset];
	fragment->bits = read16(frame, offset + 2) & 0xfff9;
	fragment->identification =
		(uint32_t)read16(frame, offset + 4) << 16 | read16(frame, offset + 6);
	header->protocol = fragment->next;
	header->transport += 8;
	return 0;
}

static int skip_extension(const struct frame *frame, struct wire_header *header)
{
	const uint8_t *extension = frame->bytes + header->transport;

	if (header->transport + 4 > frame->length)
		return -1;
	if (header->protocol == IPPROTO_ROUTING && extension[3])
		return -1; /* the destination address is not the final one */
	header->protocol = extension[0];
	header->transport += 8u + extension[1] * 8u;
	return 0;
}

/* To the transport header, as far as the headers are known; for a later fragment, to the data after
 * its fragment header. */
static int skip_extensions(const struct frame *frame, struct wire_header *header,
			   struct fragment_header *fragment)
{
	for (int i = 0;; i++) {
		bool fragmented = header->protocol == IPPROTO_FRAGMENT;

		if (!fragmented && !is_extension(header->protocol))
			return 0;
		if (fragmented ? take_fragment_header(frame, header, fragment)
			       : skip_extension(frame, header))
			return -1;
		if (fragment->bits & 0xfff8)
			return 0;
		if (i == MOST_EXTENSIONS)
			return -1;
	}
}

static bool is_icmp(const struct wire *wire, uint8_t protocol)
{
	return protocol == (wire->ipv4 ? IPPROTO_ICMP : IPPROTO_ICMPV6);
}

/* Or a timestamp, the same message with other types and three more words (RFC 792) */
static bool is_echo_request(const struct wire *wire, uint8_t type)
{
	return wire->ipv4 ? type == 8 || type == 13 : type == 128;
}

static bool is_echo_reply(const struct wire *wire, uint8_t type)
{
	return wire->ipv4 ? type == 0 || type == 14 : type == 129;
}

static bool is_error(const struct wire *wire, uint8_t type)
{
	if (!wire->ipv4)
		return type >= 1 && type <= 4;
	return type == 3 || type == 11 || type == 12;
}

bool wire_has_ports(uint8_t protocol)
{
	return protocol == IPPROTO_TCP || is_udp(protocol) || protocol == IPPROTO_SCTP;
}

bool wire_is_portless(uint8_t protocol)
{
	static const uint8_t others[] = {IPPROTO_HOPOPTS,
					 IPPROTO_DCCP,
					 IPPROTO_ROUTING,
					 IPPROTO_FRAGMENT,
					 IPPROTO_AH,
					 IPPROTO_NONE,
					 IPPROTO_DSTOPTS,
					 IPPROTO_MH,
					 139,
					 140,
					 IPPROTO_ICMP,
					 IPPROTO_ICMPV6};

	return !wire_has_ports(protocol) && !memchr(others, protocol, sizeof(others));
}

/* Ports of a header of eight bytes; for an echo the identifier is the port of the requester. */
static bool read_ports(const struct frame *frame, const struct wire *wire,
		       struct wire_header *header)
{
	uint8_t type = frame->bytes[header->transport];

	if (wire_has_ports(header->protocol)) {
		header->source_port = read16(frame, header->transport);
		header->destination_port = read16(frame, header->transport + 2);
		return true;
	}
	if (!is_icmp(wire, header->protocol))
		return wire_is_portless(header->protocol);
	header->echo_reply = is_echo_reply(wire, type);
	if (header->echo_reply)
		header->destination_port = read16(frame, header->transport + 4);
	else if (is_echo_request(wire, type))
		header->source_port = read16(frame, header->transport + 4);
	else
		return false;
	return true;
}

static enum wire_kind read_error(const struct frame *frame, struct wire *wire)
{
	struct wire_header *quoted = &wire->quoted;
	struct fragment_header fragment = {0};

	quoted->network = wire->outer.transport + 8;
	if (wire->ipv4) {
		if (read_ipv4(frame, wire->end, quoted) ||
		    read16(frame, quoted->network + 6) & 0x1fff)
			return WIRE_OPAQUE;
	} else if (read_ipv6(frame, wire->end, quoted) ||
		   skip_extensions(frame, quoted, &fragment) || fragment.bits & 0xfff8) {
		return WIRE_OPAQUE;
	}
	if (quoted->transport + 8 > wire->end || !read_ports(frame, wire, quoted))
		return WIRE_OPAQUE;
	/* An error goes to the sender of the quoted packet. */
	return memcmp(quoted->source, wire->outer.destination, 16) ? WIRE_OPAQUE : WIRE_ERROR;
}

static enum wire_kind read_transport(const struct frame *frame, struct wire *wire)
{
	struct wire_header *outer = &wire->outer;
	const uint8_t *transport = frame->bytes + outer->transport;
	size_t room = wire->end - outer->transport;

	if (wire_is_portless(outer->protocol))
		return WIRE_FLOW;
	if (outer->transport + 8 > wire->end)
		return WIRE_OPAQUE;
	if (outer->protocol == IPPROTO_TCP) {
		if (room < 20 || transport[12] >> 4 < 5 || (transport[12] >> 4) * 4u > room)
			return WIRE_OPAQUE;
		wire->tcp_flags = transport[13];
		wire->tcp_sequence = read32(frame, outer->transport + 4);
		wire->tcp_acknowledgment = read32(frame, outer->transport + 8);
		wire->tcp_length = (uint32_t)(room - (transport[12] >> 4) * 4u) +
				   !!(transport[13] & SYN) + (transport[13] & FIN);
	} else if (outer->protocol == IPPROTO_UDP) {
		uint16_t length = read16(frame, outer->transport + 4);

		if (length < 8 || (length > room && !wire->first_fragment))
			return WIRE_OPAQUE;
	} else if (outer->protocol == IPPROTO_UDPLITE) {
		uint16_t coverage = read16(frame, outer->transport + 4);

		if (read16(frame, outer->transport + 6) == 0 || (coverage && coverage < 8) ||
		    (coverage > room && !wire->first_fragment))
			return WIRE_OPAQUE;
	} else if (outer->protocol == IPPROTO_SCTP) {
		if (room < SCTP_HEADER)
			return WIRE_OPAQUE;
	} else if (is_icmp(wire, outer->protocol) && is_error(wire, transport[0])) {
		return wire->first_fragment ? WIRE_OPAQUE : read_error(frame, wire);
	} else if (is_icmp(wire, outer->protocol) && transport[1] != 0) {
		return WIRE_OPAQUE;
	}
	return read_ports(frame, wire, outer) ? WIRE_FLOW : WIRE_OPAQUE;
}

/* The ports must be in the first fragment, and no later fragment may overlap them. */
static enum wire_kind read_fragment(const struct frame *frame, struct wire *wire,
				    const struct fragment_header *fragment, unsigned int offset)
{
	uint8_t first = fragment->next;

	if (!wire_has_ports(first) && !wire_is_portless(first) && !is_icmp(wire, first) &&
	    (wire->ipv4 || !is_extension(first)))
		return WIRE_OPAQUE;
	if (offset && first == IPPROTO_TCP && offset == 8)
		return WIRE_OPAQUE;
	wire->identification = fragment->identification;
	wire->first_header = first;
	if (offset)
		return WIRE_FRAGMENT;
	wire->first_fragment = true;
	return wire->unreadable || wire->outer.transport > wire->end ? WIRE_OPAQUE
								     : read_transport(frame, wire);
}

static enum wire_kind read_packet4(const struct frame *frame, struct wire *wire)
{
	struct fragment_header fragment = {0};
	struct wire_header *outer = &wire->outer;

	if (read_ipv4(frame, frame->length, outer))
		return WIRE_FOREIGN;
	wire->end = outer->network + read16(frame, outer->network + 2);
	if (wire->end > frame->length || outer->transport > wire->end)
		return WIRE_FOREIGN;
	if (is_never_translated(outer->source) || is_never_translated(outer->destination))
		return WIRE_FOREIGN;
	fragment.bits = read16(frame, outer->network + 6) & 0x3fff;
	fragment.identification = read16(frame, outer->network + 4);
	fragment.next = outer->protocol;
	if (fragment.bits)
		return read_fragment(frame, wire, &fragment, (fragment.bits & 0x1fffu) * 8);
	return read_transport(frame, wire);
}

static enum wire_kind read_packet6(const struct frame *frame, struct wire *wire)
{
	struct fragment_header fragment = {0};
	struct wire_header *outer = &wire->outer;

	if (read_ipv6(frame, frame->length, outer))
		return WIRE_FOREIGN;
	wire->end = outer->transport + read16(frame, outer->network + 4);
	if (wire->end > frame->length || address_is_ipv4(outer->source))
		return WIRE_FOREIGN;
	if (address_is_ipv4(outer->destination))
		return WIRE_OPAQUE;
	if (is_never_translated(outer->source) || is_never_translated(outer->destination))
		return WIRE_FOREIGN;
	wire->unreadable = skip_extensions(frame, outer, &fragment);
	if (fragment.bits)
		return read_fragment(frame, wire, &fragment, fragment.bits & 0xfff8);
	if (wire->unreadable || outer->transport > wire->end)
		return WIRE_OPAQUE;
	return read_transport(frame, wire);
}

void wire_read(const struct frame *frame, struct wire *wire)
{
	uint16_t ethertype = read16(frame, 12);

	memset(wire, 0, sizeof(*wire));
	wire->outer.network = ETHERNET_SIZE;
	wire->ipv4 = ethertype == 0x0800;
	if (wire->ipv4)
		wire->kind = read_packet4(frame, wire);
	else if (ethertype == 0x86dd)
		wire->kind = read_packet6(frame, wire);
}

static uint16_t network_sum(const struct frame *frame, const struct wire *wire)
{
	const struct wire_header *outer = &wire->outer;
	size_t size = (frame->bytes[outer->network] & 15u) * 4u;

	return checksum_fold(checksum_add(0, frame->bytes + outer->network, size));
}

static size_t transport_size(const struct frame *frame, const struct wire *wire)
{
	const struct wire_header *outer = &wire->outer;

	if (outer->protocol == IPPROTO_UDP && !wire->first_fragment)
		return read16(frame, outer->transport + 4);
	return wire->end - outer->transport;
}

static uint16_t transport_sum(const struct frame *frame, const struct wire *wire)
{
	const struct wire_header *outer = &wire->outer;
	size_t size = transport_size(frame, wire), covered = size;
	uint32_t total = 0;

	if (outer->protocol == IPPROTO_UDPLITE && read16(frame, outer->transport + 4))
		covered = read16(frame, outer->transport + 4);
	if (covered > size)
		covered = size; /* only in a fragment */

	if (outer->protocol != IPPROTO_ICMP) {
		total = (uint32_t)size + outer->protocol;
		total = wire->ipv4 ? checksum_add(total, frame->bytes + outer->network + 12, 8)
				   : checksum_add(total, frame->bytes + outer->network + 8, 32);
	}
	return checksum_fold(checksum_add(total, frame->bytes + outer->transport, covered));
}

uint32_t wire_read32_little(const struct frame *frame, size_t offset)
{
	const uint8_t *bytes = frame->bytes + offset;

	return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
	       (uint32_t)bytes[3] << 24;
}

/* Computed with zeros in place of the checksum. */
static uint32_t sctp_checksum(const struct frame *frame, const struct wire *wire)
{
	size_t start = wire->outer.transport, data = start + SCTP_HEADER;
	uint32_t crc = crc32c_add(~0u, frame->bytes + start, checksum_offset(IPPROTO_SCTP), 4);

	return ~crc32c_add(crc, frame->bytes + data, wire->end - data, 0);
}

static bool has_no_checksum(const struct frame *frame, const struct wire *wire)
{
	if (wire->outer.protocol == IPPROTO_SCTP)
		return wire_read32_little(frame, wire->outer.transport +
							 checksum_offset(IPPROTO_SCTP)) == 0;
	return wire->outer.protocol == IPPROTO_UDP && read16(frame, wire->outer.transport + 6) == 0;
}

bool wire_network_checksum_right(const struct frame *frame, const struct wire *wire)
{
	return !wire->ipv4 || network_sum(frame, wire) == 0xffff;
}

bool wire_transport_checksum_right(const struct frame *frame, const struct wire *wire)
{
	if (wire->first_fragment || wire_is_portless(wire->outer.protocol) ||
	    has_no_checksum(frame, wire))
		return true;
	if (wire->outer.protocol == IPPROTO_SCTP)
		return sctp_checksum(frame, wire) ==
		       wire_read32_little(frame,
					  wire->outer.transport + checksum_offset(IPPROTO_SCTP));
	return transport_sum(frame, wire) == 0xffff;
}

void wire_write_checksums(struct frame *frame, const struct wire *wire)
{
	const struct wire_header *outer = &wire->outer;
	size_t offset = outer->transport + checksum_offset(outer->protocol);
	uint16_t checksum;
	uint32_t crc;

	if (wire->ipv4) {
		write16(frame, outer->network + 10, 0);
		write16(frame, outer->network + 10, (uint16_t)~network_sum(frame, wire));
	}
	if (wire->kind < WIRE_FLOW || wire_is_portless(outer->protocol))
		return;
	if (outer->protocol == IPPROTO_SCTP) {
		crc = sctp_checksum(frame, wire);
		write_crc(frame, offset, crc);
		return;
	}
	write16(frame, offset, 0);
	checksum = (uint16_t)~transport_sum(frame, wire);
	write16(frame, offset, checksum || !is_udp(outer->protocol) ? checksum : 0xffff);
}
