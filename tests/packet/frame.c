/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* frame.c - builds packets byte by byte, and shares no code with the programs under test. */
#include <arpa/inet.h>
#include <stdio.h>

#include "../sums.h"
#include "bytes.h"

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd
#define ETHERTYPE_VLAN 0x8100
#define ETHERTYPE_PROVIDER 0x88a8
#define FRAGMENT_HEADER 44
#define ROUTING_HEADER 43
#define DESTINATION_OPTIONS 60

static size_t address_size(const struct frame *frame)
{
	return frame->ipv4 ? 4 : 16;
}

static const uint8_t *addresses(const struct frame *frame)
{
	return frame->bytes + frame->network + (frame->ipv4 ? 12 : 8);
}

static uint32_t sum_pseudo_header(const struct frame *frame, size_t length)
{
	uint32_t sum = checksum_add(0, addresses(frame), 2 * address_size(frame));

	return sum + (uint32_t)length + (uint32_t)frame->protocol;
}

static void write_sctp_checksum(struct frame *frame, const struct packet *packet)
{
	uint32_t crc;

	if (packet->without_checksum)
		return;
	crc = ~crc32c_add(~0u, frame->bytes + frame->transport, frame->length - frame->transport,
			  0);
	write_crc(frame, frame->transport + checksum_offset(IPPROTO_SCTP), crc);
}

static void write_transport_checksum(struct frame *frame, const struct packet *packet)
{
	size_t length = frame->length - frame->transport;
	uint32_t sum = frame->protocol == IPPROTO_ICMP ? 0 : sum_pseudo_header(frame, length);
	uint16_t checksum;

	if (packet->without_checksum)
		return;
	if (packet->coverage && packet->coverage < length)
		length = packet->coverage;
	checksum = ~checksum_fold(checksum_add(sum, frame->bytes + frame->transport, length));
	if (is_udp(frame->protocol) && checksum == 0)
		checksum = 0xffff; /* RFC 768: 0 means no checksum */
	write16(frame, frame->transport + checksum_offset(frame->protocol), checksum);
}

static void put_ethernet(struct frame *frame, const struct packet *packet, const uint8_t *to_mac,
			 const uint8_t *from_mac)
{
	unsigned int ethertype = frame->ipv4 ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6;

	put_bytes(frame, to_mac, MAC_SIZE);
	put_bytes(frame, from_mac, MAC_SIZE);
	for (unsigned int i = 0; i < packet->priority_tags; i++) {
		put16(frame, i % 2 ? ETHERTYPE_PROVIDER : ETHERTYPE_VLAN);
		put16(frame, 0xe000);
	}
	if (packet->vlan) {
		put16(frame, ETHERTYPE_VLAN);
		put16(frame, 7);
	}
	put16(frame, packet->ethertype ? packet->ethertype : ethertype);
	frame->network = frame->length;
}

static void put_address(struct frame *frame, const char *text)
{
	uint8_t address[16];
	int done = inet_pton(frame->ipv4 ? AF_INET : AF_INET6, text, address);

	assert(done == 1);
	put_bytes(frame, address, address_size(frame));
}

static void put_ipv4(struct frame *frame, const struct packet *packet)
{
	unsigned int ihl = 5 + packet->ipv4_options / 4;

	put8(frame, (packet->ip_version ? packet->ip_version : 4) << 4 |
			    (packet->ihl ? packet->ihl : ihl));
	put8(frame, packet->type_of_service);
	put16(frame, 0); /* total length: filled in later */
	put16(frame, packet->identification ? packet->identification : 0x1234);
	switch (packet->fragment) {
	case FIRST_FRAGMENT:
		put16(frame, 0x2000);
		break;
	case LATER_FRAGMENT:
		put16(frame, 64);
		break;
	default:
		put16(frame, 0x4000);
	}
	put8(frame, packet->hop_limit ? packet->hop_limit : TIME_TO_LIVE);
	put8(frame, packet->protocol);
	put16(frame, 0); /* header checksum: filled in later */
	put_address(frame, packet->from);
	put_address(frame, packet->to);
	for (unsigned int i = 0; i < packet->ipv4_options; i++)
		put8(frame, 1); /* no operation */
}

static void finish_ipv4(struct frame *frame, const struct packet *packet)
{
	size_t header = 20 + packet->ipv4_options;

	if (!packet->without_ip_length)
		write16(frame, frame->network + 2,
			frame->length - frame->network + packet->ip_length_off);
	write16(frame, frame->network + 10,
		(uint16_t)~checksum_fold(checksum_add(0, frame->bytes + frame->network, header)) ^
			packet->damaged_header);
}

static unsigned int extension_number(char letter)
{
	switch (letter) {
	case 'h':
		return 0;
	case 'd':
	case 'D':
		return DESTINATION_OPTIONS;
	case 'r':
		return ROUTING_HEADER;
	case 'f':
		return FRAGMENT_HEADER;
	default:
		assert(letter == 'n');
		return IPPROTO_NONE;
	}
}

/* Whether its place is among the extensions, not after them */
static bool has_fragment_header(const struct packet *packet)
{
	return packet->extensions && strchr(packet->extensions, 'f');
}

static unsigned int next_header(const struct packet *packet, const char *extensions)
{
	if (*extensions)
		return extension_number(*extensions);
	return packet->fragment && !has_fragment_header(packet) ? FRAGMENT_HEADER
								: (unsigned int)packet->protocol;
}

static void put_options(struct frame *frame, unsigned int size)
{
	put8(frame, size / 8 - 1);
	put8(frame, 1); /* PadN over the rest */
	put8(frame, size - 4);
	for (unsigned int i = 4; i < size; i++)
		put8(frame, 0);
}

static void put_routing(struct frame *frame, unsigned int segments_left)
{
	put8(frame, 0);
	put8(frame, 4); /* segment routing (RFC 8754); the kind does not matter here */
	put8(frame, segments_left);
	put32(frame, 0);
}

static void put_fragment_header(struct frame *frame, const struct packet *packet, unsigned int next)
{
	frame->fragment_header = frame->length;
	put8(frame, next);
	put8(frame, 0);
	switch (packet->fragment) {
	case FIRST_FRAGMENT:
		put16(frame, 1);
		break;
	case LATER_FRAGMENT:
		put16(frame, 64 << 3);
		break;
	default:
		put16(frame, 0);
	}
	put32(frame, packet->identification ? packet->identification : 0x12345678);
}

static void put_extension(struct frame *frame, const struct packet *packet, char letter,
			  unsigned int next)
{
	if (letter == 'f') {
		put_fragment_header(frame, packet, next);
		return;
	}
	put8(frame, next);
	if (letter == 'r')
		put_routing(frame, packet->segments_left);
	else
		put_options(frame, letter == 'D' ? 24 : 8);
}

static void put_ipv6(struct frame *frame, const struct packet *packet)
{
	const char *extensions = packet->extensions ? packet->extensions : "";

	put32(frame, (packet->ip_version ? packet->ip_version : 6) << 28 | 0x12345);
	put16(frame, 0); /* payload length: filled in later */
	put8(frame, next_header(packet, extensions));
	put8(frame, packet->hop_limit ? packet->hop_limit : TIME_TO_LIVE);
	put_address(frame, packet->from);
	put_address(frame, packet->to);
	for (; *extensions; extensions++)
		put_extension(frame, packet, *extensions, next_header(packet, extensions + 1));
	if (packet->fragment && !has_fragment_header(packet))
		put_fragment_header(frame, packet, (unsigned int)packet->protocol);
}

static void finish_ipv6(struct frame *frame, const struct packet *packet)
{
	write16(frame, frame->network + 4,
		frame->length - frame->network - 40 + packet->ip_length_off);
}

static unsigned int payload_size(const struct packet *packet)
{
	if (packet->empty)
		return 0;
	return packet->payload ? packet->payload : 7;
}

static void put_tcp(struct frame *frame, const struct packet *packet)
{
	put16(frame, packet->from_port);
	put16(frame, packet->to_port);
	put32(frame, packet->sequence ? packet->sequence : 0x01020304);
	if (packet->tcp_flags & ACK)
		put32(frame, packet->acknowledgment ? packet->acknowledgment : 0x01020304);
	else
		put32(frame, 0);
	put8(frame, (packet->data_offset ? packet->data_offset : 5) << 4);
	put8(frame, packet->tcp_flags);
	put16(frame, 64240);
	put16(frame, 0);
	put16(frame, 0);
}

static void put_udp(struct frame *frame, const struct packet *packet)
{
	put16(frame, packet->from_port);
	put16(frame, packet->to_port);
	if (packet->protocol == IPPROTO_UDPLITE)
		put16(frame, packet->coverage);
	else
		put16(frame, 8 + payload_size(packet) + packet->udp_length_off);
	put16(frame, 0);
}

static void put_icmp(struct frame *frame, const struct packet *packet)
{
	put8(frame, packet->icmp_type);
	put8(frame, packet->icmp_code);
	put16(frame, 0);
	if (packet->quotes) {
		put32(frame, packet->icmp_rest);
		return;
	}
	put16(frame, packet->from_port);
	put16(frame, 1); /* sequence */
}

static void put_sctp(struct frame *frame, const struct packet *packet)
{
	put16(frame, packet->from_port);
	put16(frame, packet->to_port);
	put32(frame, 0x0a0b0c0d); /* verification tag */
	put32(frame, 0);
}

/* The quoted packet is built whole, with checksums over all of it, and then cut off. */
static void put_quoted(struct frame *frame, const struct packet *packet)
{
	static const uint8_t no_mac[MAC_SIZE];
	struct frame quoted;
	size_t size;

	frame_build(&quoted, packet->quotes, no_mac, no_mac);
	size = quoted.length - quoted.network;
	if (packet->quotes_eight)
		size = quoted.transport + 8 - quoted.network;
	if (packet->quoted_bytes)
		size = packet->quoted_bytes;
	assert(size <= quoted.length - quoted.network);
	put_bytes(frame, quoted.bytes + quoted.network, size);
}

static void put_transport(struct frame *frame, const struct packet *packet)
{
	frame->transport = frame->length;
	switch (packet->protocol) {
	case IPPROTO_TCP:
		put_tcp(frame, packet);
		break;
	case IPPROTO_UDP:
	case IPPROTO_UDPLITE:
		put_udp(frame, packet);
		break;
	case IPPROTO_SCTP:
		put_sctp(frame, packet);
		break;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		put_icmp(frame, packet);
		break;
	}
	if (packet->quotes) {
		put_quoted(frame, packet);
		return;
	}
	for (unsigned int i = 0; i < payload_size(packet); i++)
		put8(frame, 'a' + i % 26);
}

/* Leaves one fragment of the datagram, and sets the offset in its header. */
static void cut_piece(struct frame *frame, const struct packet *packet)
{
	size_t whole = frame->length - frame->transport;
	bool more = packet->piece_offset + packet->piece_size < whole;

	assert(packet->fragment && packet->piece_offset + packet->piece_size <= whole);
	memmove(frame->bytes + frame->transport,
		frame->bytes + frame->transport + packet->piece_offset, packet->piece_size);
	frame->length = frame->transport + packet->piece_size;
	if (frame->ipv4)
		write16(frame, frame->network + 6, packet->piece_offset / 8 | (more ? 0x2000 : 0));
	else
		write16(frame, frame->fragment_header + 2, packet->piece_offset | (more ? 1 : 0));
}

static bool has_checksum(const struct packet *packet)
{
	return packet->protocol == IPPROTO_TCP || is_udp(packet->protocol) ||
	       packet->protocol == IPPROTO_ICMP || packet->protocol == IPPROTO_ICMPV6;
}

void frame_build(struct frame *frame, const struct packet *packet, const uint8_t *to_mac,
		 const uint8_t *from_mac)
{
	memset(frame, 0, sizeof(*frame));
	frame->ipv4 = !strchr(packet->from, ':');
	frame->protocol = packet->protocol;
	frame->segment_size = packet->segment_size;
	put_ethernet(frame, packet, to_mac, from_mac);
	if (frame->ipv4)
		put_ipv4(frame, packet);
	else
		put_ipv6(frame, packet);
	put_transport(frame, packet);
	if (packet->protocol == IPPROTO_SCTP)
		write_sctp_checksum(frame, packet);
	else if (has_checksum(packet))
		write_transport_checksum(frame, packet);
	if (packet->piece_size)
		cut_piece(frame, packet);
	if (packet->without_transport)
		frame->length = frame->transport + 4;
	if (frame->ipv4)
		finish_ipv4(frame, packet);
	else
		finish_ipv6(frame, packet);
	for (unsigned int i = 0; i < packet->padding; i++)
		put8(frame, 0);
}

void frame_strip_ethernet(struct frame *frame)
{
	frame->length -= frame->network;
	memmove(frame->bytes, frame->bytes + frame->network, frame->length);
	frame->transport -= frame->network;
	frame->network = 0;
}

uint16_t frame_source_port(const struct frame *frame)
{
	bool echo = frame->protocol == IPPROTO_ICMP || frame->protocol == IPPROTO_ICMPV6;

	return read16(frame, frame->transport + (echo ? 4 : 0));
}

bool frame_equal(const struct frame *a, const struct frame *b)
{
	return a->length == b->length && memcmp(a->bytes, b->bytes, a->length) == 0;
}

struct field {
	size_t offset;
	size_t size;
	const char *name;
};

static const struct field ethernet_fields[] = {
	{0, 6, "destination MAC"},
	{6, 6, "source MAC"},
	{12, 2, "ethertype"},
	{0, 0, NULL},
};

static const struct field ipv4_fields[] = {
	{0, 1, "version and header length"},
	{1, 1, "type of service"},
	{2, 2, "total length"},
	{4, 2, "identification"},
	{6, 2, "fragment offset"},
	{8, 1, "time to live"},
	{9, 1, "protocol"},
	{10, 2, "IPv4 header checksum"},
	{12, 4, "source address"},
	{16, 4, "destination address"},
	{0, 0, NULL},
};

static const struct field ipv6_fields[] = {
	{0, 4, "version, class, flow label"},
	{4, 2, "payload length"},
	{6, 1, "next header"},
	{7, 1, "hop limit"},
	{8, 16, "source address"},
	{24, 16, "destination address"},
	{0, 0, NULL},
};

static const struct field tcp_fields[] = {
	{0, 2, "source port"},     {2, 2, "destination port"},  {4, 4, "sequence"},
	{8, 4, "acknowledgement"}, {12, 2, "offset and flags"}, {14, 2, "window"},
	{16, 2, "TCP checksum"},   {18, 2, "urgent pointer"},   {0, 0, NULL},
};

static const struct field udp_fields[] = {
	{0, 2, "source port"}, {2, 2, "destination port"},
	{4, 2, "UDP length"},  {6, 2, "UDP checksum"},
	{0, 0, NULL},
};

static const struct field sctp_fields[] = {
	{0, 2, "source port"},
	{2, 2, "destination port"},
	{4, 4, "verification tag"},
	{8, 4, "SCTP checksum"},
	{0, 0, NULL},
};

static const struct field icmp_fields[] = {
	{0, 1, "type"},       {1, 1, "code"},     {2, 2, "ICMP checksum"},
	{4, 2, "identifier"}, {6, 2, "sequence"}, {0, 0, NULL},
};

static const struct field *transport_fields(int protocol)
{
	if (protocol == IPPROTO_TCP)
		return tcp_fields;
	if (protocol == IPPROTO_SCTP)
		return sctp_fields;
	return is_udp(protocol) ? udp_fields : icmp_fields;
}

static const char *find_field(const struct field *fields, size_t offset)
{
	for (; fields->name; fields++)
		if (offset >= fields->offset && offset < fields->offset + fields->size)
			return fields->name;
	return "options or payload";
}

static const char *field_name(const struct frame *frame, size_t offset)
{
	if (offset < frame->network)
		return find_field(ethernet_fields, offset);
	if (offset >= frame->transport)
		return find_field(transport_fields(frame->protocol), offset - frame->transport);
	return find_field(frame->ipv4 ? ipv4_fields : ipv6_fields, offset - frame->network);
}

static bool differs_at(const struct frame *a, const struct frame *b, size_t offset)
{
	if (offset >= a->length || offset >= b->length)
		return offset < a->length || offset < b->length;
	return a->bytes[offset] != b->bytes[offset];
}

static void print_line(const char *label, const struct frame *frame, const struct frame *other,
		       size_t start)
{
	printf("#   %-8s %04zx ", label, start);
	for (size_t i = start; i < start + 16; i++) {
		if (i >= frame->length)
			printf("    ");
		else if (differs_at(frame, other, i))
			printf("[%02x]", frame->bytes[i]);
		else
			printf(" %02x ", frame->bytes[i]);
	}
	putchar('\n');
}

void frame_print_difference(const struct frame *expected, const struct frame *got)
{
	size_t longest = expected->length > got->length ? expected->length : got->length;
	const char *last = NULL;

	for (size_t start = 0; start < longest; start += 16) {
		print_line("expected", expected, got, start);
		print_line("got", got, expected, start);
	}
	for (size_t i = 0; i < longest; i++) {
		const char *name = field_name(expected, i);

		if (differs_at(expected, got, i) && name != last) {
			printf("#   differs at %zu: %s\n", i, name);
			last = name;
		}
	}
}
