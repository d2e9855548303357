/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* oracle_bytes.c - translates a frame word by word; RFC 1624 for the checksums. */
#include <netinet/in.h>
#include <string.h>

#include "oracle.h"

#include "../sums.h"

struct edit {
	struct frame *frame;
	const struct wire *wire;
};

static uint16_t adjust(uint16_t checksum, uint16_t old, uint16_t new)
{
	uint32_t sum = (uint16_t)~checksum + (uint32_t)(uint16_t)~old + new;

	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static bool quoted(const struct edit *edit, size_t offset)
{
	return edit->wire->kind == WIRE_ERROR && offset >= edit->wire->quoted.network;
}

static void edit_word(const struct edit *edit, size_t offset, uint16_t value);

static void follow(const struct edit *edit, size_t checksum, bool zero_is_none, uint16_t old,
		   uint16_t new)
{
	uint16_t was = read16(edit->frame, checksum);
	uint16_t is = adjust(was, old, new);

	if (zero_is_none && was == 0)
		return;
	if (zero_is_none && is == 0)
		is = 0xffff;
	edit_word(edit, checksum, is);
}

static bool is_address(const struct wire *wire, const struct wire_header *header, size_t offset)
{
	return offset < header->network + (wire->ipv4 ? 20 : 40);
}

/* Updates the checksums of the outer or the quoted packet for a changed word. */
static void follow_in(const struct edit *edit, const struct wire_header *header, size_t offset,
		      uint16_t old, uint16_t new)
{
	size_t network = header->network + 10;
	size_t transport = header->transport + checksum_offset(header->protocol);
	bool address = is_address(edit->wire, header, offset);

	if (address && edit->wire->ipv4 && offset != network)
		follow(edit, network, false, old, new);
	if (edit->wire->kind == WIRE_FRAGMENT || header->protocol == IPPROTO_SCTP ||
	    wire_is_portless(header->protocol) || (address && header->protocol == IPPROTO_ICMP))
		return;
	if (address && offset == network && edit->wire->ipv4)
		return;
	if (transport + 2 <= edit->wire->end && offset != transport)
		follow(edit, transport, is_udp(header->protocol), old, new);
}

/* The error's checksum covers the quoted packet as data. */
static void edit_word(const struct edit *edit, size_t offset, uint16_t value)
{
	const struct wire *wire = edit->wire;
	uint16_t old = read16(edit->frame, offset);
	size_t error = wire->outer.transport + 2;

	if (old == value)
		return;
	write16(edit->frame, offset, value);
	if (!quoted(edit, offset)) {
		if (offset != wire->outer.transport + checksum_offset(wire->outer.protocol))
			follow_in(edit, &wire->outer, offset, old, value);
		return;
	}
	follow(edit, error, false, old, value);
	if (offset != wire->quoted.transport + checksum_offset(wire->quoted.protocol))
		follow_in(edit, &wire->quoted, offset, old, value);
}

static void edit_address(const struct edit *edit, const struct wire_header *header, bool source,
			 const uint8_t *address)
{
	size_t size = edit->wire->ipv4 ? 4 : 16;
	size_t offset = header->network + (edit->wire->ipv4 ? 12 : 8) + (source ? 0 : size);

	for (size_t i = 0; i < size; i += 2) {
		const uint8_t *word = address + 16 - size + i;

		edit_word(edit, offset + i, (uint16_t)(word[0] << 8 | word[1]));
	}
}

static size_t sctp_length(const struct edit *edit, const struct wire_header *header)
{
	size_t length = edit->wire->ipv4 ? read16(edit->frame, header->network + 2)
					 : read16(edit->frame, header->network + 4) + (size_t)40;

	return header->network + length - header->transport;
}

/* A CRC is linear: it changes by the CRC of the difference. */
static void follow_sctp(const struct edit *edit, const struct wire_header *header,
			const uint8_t *before)
{
	size_t offset = header->transport + checksum_offset(IPPROTO_SCTP);
	uint32_t checksum = wire_read32_little(edit->frame, offset);
	uint8_t difference[4];

	if (offset + 4 > edit->wire->end || checksum == 0)
		return;
	for (int i = 0; i < 4; i++)
		difference[i] = before[i] ^ edit->frame->bytes[header->transport + (size_t)i];
	checksum ^= crc32c_add(0, difference, 4, sctp_length(edit, header) - 4);
	edit_word(edit, offset, (uint16_t)(checksum << 8 | (checksum >> 8 & 0xff)));
	checksum >>= 16;
	edit_word(edit, offset + 2, (uint16_t)(checksum << 8 | checksum >> 8));
}

static void edit_ports(const struct edit *edit, const struct wire_header *header, uint16_t source,
		       uint16_t destination)
{
	uint8_t before[4];

	if (wire_is_portless(header->protocol))
		return;
	memcpy(before, edit->frame->bytes + header->transport, sizeof(before));
	if (!wire_has_ports(header->protocol)) {
		edit_word(edit, header->transport + 4, header->echo_reply ? destination : source);
		return;
	}
	edit_word(edit, header->transport, source);
	edit_word(edit, header->transport + 2, destination);
	if (header->protocol == IPPROTO_SCTP)
		follow_sctp(edit, header, before);
}

void oracle_translate(const struct visit *visit, const struct expectation *expected,
		      bool sender_translated, struct frame *frame)
{
	const struct wire *wire = &visit->wire;
	struct edit edit = {.frame = frame, .wire = wire};
	const struct rewrite *rewrite = &expected->rewrite;
	bool in = expected->tuple.direction == DIRECTION_IN;
	bool error = wire->kind == WIRE_ERROR;
	/* The quoted packet went the other way. */
	bool own_is_source = error ? in : !in;
	const struct wire_header *header = error ? &wire->quoted : &wire->outer;

	*frame = visit->frame;
	if (error && (in || sender_translated))
		edit_address(&edit, &wire->outer, !in, rewrite->address);
	edit_address(&edit, header, own_is_source, rewrite->address);
	if (wire->kind == WIRE_FRAGMENT)
		return;
	if (own_is_source)
		edit_ports(&edit, header, rewrite->port, rewrite->peer_port);
	else
		edit_ports(&edit, header, rewrite->peer_port, rewrite->port);
}
