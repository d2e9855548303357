/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* craft.c - builds packets byte by byte. */
#include "craft.h"

#include "random.h"

#define MOST_QUOTED 600

static void put_random(struct frame *frame, size_t size)
{
	while (size--)
		put8(frame, random_number());
}

static unsigned int fragment_bits(void)
{
	static const unsigned int fragments[] = {0x2000, 0x2000, 0x2001, 0x0001, 0x00b9, 0x20b9};

	return random_one_in(10) ? RANDOM_OF(fragments) : random_below(2) * 0x4000;
}

static void put_ipv4(struct frame *frame, const struct craft *craft)
{
	unsigned int options = random_one_in(8) ? random_below(11) : 0;

	put8(frame, 0x45 + options);
	put8(frame, random_number());
	put16(frame, 0);               /* the length: filled in later */
	put16(frame, random_below(4)); /* so that fragments belong to the same datagram */
	put16(frame, fragment_bits());
	put8(frame, random_number());
	put8(frame, craft->protocol);
	put16(frame, 0);
	put_bytes(frame, craft->source + 12, 4);
	put_bytes(frame, craft->destination + 12, 4);
	put_random(frame, options * 4);
}

static void put_extension(struct frame *frame, unsigned int kind, unsigned int next)
{
	static const uint16_t fragments[] = {0x0001, 0x0001, 0x0009, 0x05c8, 0x05c9, 0x0000};
	unsigned int size = kind == IPPROTO_FRAGMENT ? 0 : random_below(3);

	put8(frame, next);
	if (kind == IPPROTO_FRAGMENT) {
		put8(frame, 0);
		put16(frame, RANDOM_OF(fragments));
		put32(frame, random_below(4));
		return;
	}
	put8(frame, size);
	if (kind == IPPROTO_ROUTING) {
		put8(frame, 4);
		put8(frame, random_one_in(4)); /* segments left */
	} else {
		put16(frame, random_number());
	}
	put_random(frame, 4 + size * 8);
}

static void put_ipv6(struct frame *frame, const struct craft *craft)
{
	static const uint8_t kinds[] = {IPPROTO_HOPOPTS, IPPROTO_ROUTING, IPPROTO_DSTOPTS,
					IPPROTO_FRAGMENT};
	unsigned int count = random_one_in(8) ? random_below(8) : 0;
	uint8_t headers[9];

	for (unsigned int i = 0; i < count; i++)
		headers[i] = RANDOM_OF(kinds);
	headers[count] = craft->protocol;
	put32(frame, 0x60000000 | (random_number() & 0xfffffff));
	put16(frame, 0);
	put8(frame, headers[0]);
	put8(frame, random_number());
	put_bytes(frame, craft->source, 16);
	put_bytes(frame, craft->destination, 16);
	for (unsigned int i = 0; i < count; i++)
		put_extension(frame, headers[i], headers[i + 1]);
}

static void put_tcp(struct frame *frame, const struct craft *craft)
{
	unsigned int options = random_one_in(3) ? random_below(11) : 0;

	put16(frame, craft->source_port);
	put16(frame, craft->destination_port);
	/* Mostly the same number, so that packets acknowledge each other */
	put32(frame, random_one_in(8) ? random_number() : 0x01020304);
	put32(frame, random_one_in(8) ? random_number() : 0x01020304);
	put8(frame, (5 + options) << 4 | random_below(16));
	put8(frame, craft->tcp_flags);
	put16(frame, random_number());
	put32(frame, 0);
	put_random(frame, options * 4);
}

static bool is_icmp(uint8_t protocol)
{
	return protocol == IPPROTO_ICMP || protocol == IPPROTO_ICMPV6;
}

static void put_error(struct frame *frame, const struct craft *craft)
{
	static const uint8_t types4[] = {3, 11, 12}, types6[] = {1, 2, 3, 4};
	size_t quoted = craft->about->length - 14;

	if (random_one_in(3))
		quoted = random_below((uint32_t)quoted + 1);
	if (quoted > MOST_QUOTED)
		quoted = MOST_QUOTED;
	put8(frame, address_is_ipv4(craft->source) ? RANDOM_OF(types4) : RANDOM_OF(types6));
	put8(frame, random_below(16));
	put16(frame, 0);
	put32(frame, random_number());
	put_bytes(frame, craft->about->bytes + 14, quoted);
}

static void put_echo(struct frame *frame, const struct craft *craft)
{
	bool v4 = craft->protocol == IPPROTO_ICMP;
	uint16_t identifier = craft->echo_reply ? craft->destination_port : craft->source_port;

	if (v4 && random_one_in(4))
		put8(frame, craft->echo_reply ? 14 : 13);
	else
		put8(frame, craft->echo_reply ? (v4 ? 0 : 129) : (v4 ? 8 : 128));
	put8(frame, random_one_in(32));
	put16(frame, 0);
	put16(frame, identifier ? identifier : 1);
	put16(frame, random_number());
}

static void put_transport(struct frame *frame, const struct craft *craft)
{
	size_t payload = random_one_in(4) ? random_below(200) : random_below(8);

	if (craft->about) {
		put_error(frame, craft);
		return;
	}
	if (craft->protocol == IPPROTO_TCP) {
		put_tcp(frame, craft);
	} else if (craft->protocol == IPPROTO_UDP) {
		put16(frame, craft->source_port);
		put16(frame, craft->destination_port);
		put16(frame, (unsigned int)payload + 8);
		put16(frame, 0);
	} else if (craft->protocol == IPPROTO_UDPLITE) {
		put16(frame, craft->source_port);
		put16(frame, craft->destination_port);
		put16(frame, random_one_in(3) ? 0 : 8 + random_below((uint32_t)payload + 1));
		put16(frame, 1); /* without any it would be invalid */
	} else if (craft->protocol == IPPROTO_SCTP) {
		put16(frame, craft->source_port);
		put16(frame, craft->destination_port);
		put32(frame, random_number());
		put32(frame, 0);
	} else if (is_icmp(craft->protocol)) {
		put_echo(frame, craft);
	} else {
		put16(frame, craft->source_port);
		put16(frame, craft->destination_port);
		put_random(frame, 16);
	}
	put_random(frame, payload);
}

static void write_checksums(struct frame *frame)
{
	struct wire wire;

	wire_read(frame, &wire);
	if (wire.kind == WIRE_FOREIGN)
		return;
	wire_write_checksums(frame, &wire);
	/* UDP without a checksum, which is forbidden over IPv6 but may occur */
	if (wire.kind == WIRE_FLOW && wire.outer.protocol == IPPROTO_UDP &&
	    random_one_in(wire.ipv4 ? 4 : 40))
		write16(frame, wire.outer.transport + 6, 0);
}

void craft_frame(struct frame *frame, const struct craft *craft)
{
	bool v4 = address_is_ipv4(craft->source);

	frame->length = 12; /* MACs: written when the hook is known */
	put16(frame, v4 ? 0x0800 : 0x86dd);
	if (v4)
		put_ipv4(frame, craft);
	else
		put_ipv6(frame, craft);
	put_transport(frame, craft);
	if (v4)
		write16(frame, 14 + 2, (uint16_t)(frame->length - 14));
	else
		write16(frame, 14 + 4, (uint16_t)(frame->length - 54));
	write_checksums(frame);
	if (random_one_in(4))
		put_random(frame, random_below(20));
}

void craft_tag(struct frame *frame)
{
	size_t size = 4 * (1 + random_below(5));

	if (frame->length + size > FRAME_SIZE)
		return;
	memmove(frame->bytes + 12 + size, frame->bytes + 12, frame->length - 12);
	frame->length += size;
	for (size_t at = 12; at < 12 + size; at += 4) {
		write16(frame, at, random_one_in(3) ? 0x88a8 : 0x8100);
		write16(frame, at + 2, random_one_in(6) ? 7 : (uint16_t)(random_below(16) << 12));
	}
}

/* Makes a word of the headers a little larger or smaller, or random. */
static void spoil_word(struct frame *frame, size_t offset)
{
	static const int steps[] = {1, -1, 2, -4, 8, 256, -256};
	uint16_t value = read16(frame, offset);

	if (random_one_in(4))
		value = (uint16_t)random_number();
	else
		value = (uint16_t)(value + RANDOM_OF(steps));
	write16(frame, offset, value);
}

static void spoil_once(struct frame *frame)
{
	size_t headers = frame->length < 120 ? frame->length : 120;
	size_t offset = 12 + random_below((uint32_t)headers - 13);

	switch (random_below(6)) {
	case 0:
		frame->length = 15 + random_below((uint32_t)frame->length - 14);
		break;
	case 1:
		frame->bytes[offset] ^= 1u << random_below(8);
		break;
	case 2:
		frame->bytes[offset] = (uint8_t)random_number();
		break;
	default:
		spoil_word(frame, offset);
	}
}

void craft_spoil(struct frame *frame)
{
	int times = 1 + (int)random_below(3);

	while (times-- && frame->length > 20)
		spoil_once(frame);
	if (random_one_in(2))
		write_checksums(frame);
}
