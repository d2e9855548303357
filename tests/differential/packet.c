/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "packet.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../sums.h"

enum { IP6_FRAGMENT = 44, ICMP6 = 58 };

static const uint8_t icmp_numbers[ICMP_OTHER][2][2] = {
	[ICMP_REQUEST] = {{8, 0}, {128, 0}},
	[ICMP_REPLY] = {{0, 0}, {129, 0}},
	[ICMP_PORT_UNREACHABLE] = {{3, 3}, {1, 4}},
	[ICMP_TIME_EXCEEDED] = {{11, 0}, {3, 0}},
	[ICMP_TOO_BIG] = {{3, 4}, {2, 0}},
	[ICMP_HOST_UNREACHABLE] = {{3, 1}, {1, 3}},
};

static const char *const icmp_names[] = {"ICMP",	 "echo request", "echo reply", "port unreachable",
					 "time exceeded", "too big",	  "host unreachable",
					 "other ICMP"};

bool is_v4(const struct in6_addr *address)
{
	return IN6_IS_ADDR_V4MAPPED(address);
}

bool same_address(const struct in6_addr *a, const struct in6_addr *b)
{
	return !memcmp(a, b, sizeof(*a));
}

struct in6_addr address_of(const char *text)
{
	char mapped[INET6_ADDRSTRLEN + 8];
	struct in6_addr address;

	snprintf(mapped, sizeof(mapped), "%s%s", strchr(text, ':') ? "" : "::ffff:", text);
	if (inet_pton(AF_INET6, mapped, &address) != 1) {
		fprintf(stderr, "differential: not an address: %s\n", text);
		exit(2);
	}
	return address;
}

bool is_icmp_error(const struct packet *packet)
{
	return packet->protocol == IPPROTO_ICMP && packet->icmp > ICMP_REPLY;
}

static void put16(uint8_t *bytes, uint32_t value)
{
	bytes[0] = (uint8_t)(value >> 8);
	bytes[1] = (uint8_t)value;
}

static void put32(uint8_t *bytes, uint32_t value)
{
	put16(bytes, value >> 16);
	put16(bytes + 2, value);
}

static uint16_t get16(const uint8_t *bytes)
{
	return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

static uint32_t get32(const uint8_t *bytes)
{
	return (uint32_t)get16(bytes) << 16 | get16(bytes + 2);
}

/* Of the pseudo header; ICMP has none in IPv4. */
static uint32_t pseudo_sum(const struct packet *packet, size_t size)
{
	size_t skip = is_v4(&packet->source) ? 12 : 0;
	uint32_t sum;

	if (packet->protocol == IPPROTO_ICMP && skip)
		return 0;
	sum = (packet->protocol == IPPROTO_ICMP ? ICMP6 : packet->protocol) + (uint32_t)size;
	sum = checksum_add(sum, &packet->source.s6_addr[skip], 16 - skip);
	return checksum_add(sum, &packet->destination.s6_addr[skip], 16 - skip);
}

static size_t checksum_offset(uint8_t protocol)
{
	return protocol == IPPROTO_TCP ? 16 : protocol == IPPROTO_UDP ? 6 : 2;
}

static size_t header_size(uint8_t protocol)
{
	return protocol == IPPROTO_TCP ? 20 : 8;
}

static void write_icmp(const struct packet *packet, uint8_t *bytes)
{
	const uint8_t *numbers = icmp_numbers[packet->icmp][!is_v4(&packet->source)];

	bytes[0] = numbers[0];
	bytes[1] = numbers[1];
	if (packet->icmp == ICMP_TOO_BIG)
		put32(bytes + 4, 1400);
	if (packet->icmp > ICMP_REPLY)
		return;
	put16(bytes + 4, packet->source_port | packet->destination_port);
	put16(bytes + 6, 1);
}

size_t packet_transport(const struct packet *packet, uint8_t *bytes)
{
	size_t header = header_size(packet->protocol), size = header + packet->size;
	uint16_t sum;

	memset(bytes, 0, header);
	memcpy(bytes + header, packet->payload, packet->size);
	if (packet->protocol == IPPROTO_ICMP) {
		write_icmp(packet, bytes);
	} else {
		put16(bytes, packet->source_port);
		put16(bytes + 2, packet->destination_port);
	}
	if (packet->protocol == IPPROTO_UDP)
		put16(bytes + 4, (uint32_t)size);
	if (packet->protocol == IPPROTO_TCP) {
		put32(bytes + 4, packet->sequence);
		put32(bytes + 8, packet->acknowledged);
		bytes[12] = 5 << 4;
		bytes[13] = packet->flags;
		put16(bytes + 14, 30000);
	}
	sum = (uint16_t)~checksum_fold(checksum_add(pseudo_sum(packet, size), bytes, size));
	put16(bytes + checksum_offset(packet->protocol), sum ? sum : 0xffff);
	return size;
}

static size_t write_v4(const struct packet *packet, const struct part *part, uint8_t *bytes)
{
	memset(bytes, 0, 20);
	bytes[0] = 0x45;
	bytes[1] = packet->tos;
	put16(bytes + 2, (uint32_t)(20 + part->size));
	put16(bytes + 4, packet->id);
	put16(bytes + 6, (uint32_t)(part->offset / 8) | (part->more ? 0x2000 : 0));
	bytes[8] = packet->ttl;
	bytes[9] = packet->protocol;
	memcpy(bytes + 12, &packet->source.s6_addr[12], 4);
	memcpy(bytes + 16, &packet->destination.s6_addr[12], 4);
	put16(bytes + 10, (uint16_t)~checksum_fold(checksum_add(0, bytes, 20)));
	return 20;
}

static size_t write_v6(const struct packet *packet, const struct part *part, bool fragment,
		       uint8_t *bytes)
{
	uint8_t next = packet->protocol == IPPROTO_ICMP ? ICMP6 : packet->protocol;
	size_t extra = fragment ? 8 : 0;

	put32(bytes, 6u << 28 | (uint32_t)packet->tos << 20 | packet->id);
	put16(bytes + 4, (uint32_t)(part->size + extra));
	bytes[6] = fragment ? IP6_FRAGMENT : next;
	bytes[7] = packet->ttl;
	memcpy(bytes + 8, &packet->source, 16);
	memcpy(bytes + 24, &packet->destination, 16);
	if (fragment) {
		bytes[40] = next;
		bytes[41] = 0;
		put16(bytes + 42, (uint32_t)part->offset | part->more);
		put32(bytes + 44, packet->id);
	}
	return 40 + extra;
}

size_t packet_part(const struct packet *packet, const uint8_t *transport, size_t whole,
		   const struct part *part, uint8_t *bytes)
{
	bool fragment = part->size != whole;
	size_t header = is_v4(&packet->source) ? write_v4(packet, part, bytes)
					       : write_v6(packet, part, fragment, bytes);

	memcpy(bytes + header, transport + part->offset, part->size);
	return header + part->size;
}

size_t packet_whole(const struct packet *packet, uint8_t *bytes)
{
	uint8_t transport[MAX_PACKET];
	struct part part = {.size = packet_transport(packet, transport)};

	return packet_part(packet, transport, part.size, &part, bytes);
}

static bool headers_v4(struct headers *headers, const uint8_t *bytes, size_t size)
{
	struct packet *packet = &headers->packet;
	size_t total = get16(bytes + 2), header = (bytes[0] & 15u) * 4;

	if (header < 20 || size < header)
		return false;
	if (checksum_fold(checksum_add(0, bytes, header)) != 0xffff)
		packet->flaw = "wrong IP checksum";
	packet->source = packet->destination = address_of("0.0.0.0");
	memcpy(&packet->source.s6_addr[12], bytes + 12, 4);
	memcpy(&packet->destination.s6_addr[12], bytes + 16, 4);
	packet->tos = bytes[1];
	packet->id = get16(bytes + 4);
	packet->ttl = bytes[8];
	packet->protocol = bytes[9];
	headers->fragment_id = packet->id;
	headers->part.offset = (get16(bytes + 6) & 0x1fffu) * 8;
	headers->part.more = bytes[6] & 0x20;
	headers->part.size = (total < size && total >= header ? total : size) - header;
	headers->bytes = bytes + header;
	return true;
}

static bool headers_v6(struct headers *headers, const uint8_t *bytes, size_t size)
{
	struct packet *packet = &headers->packet;
	size_t total = 40u + get16(bytes + 4), header = 40;

	if (size < 48)
		return false;
	memcpy(&packet->source, bytes + 8, 16);
	memcpy(&packet->destination, bytes + 24, 16);
	packet->tos = (uint8_t)(get16(bytes) >> 4);
	packet->id = (uint16_t)get32(bytes);
	packet->ttl = bytes[7];
	packet->protocol = bytes[6];
	if (packet->protocol == IP6_FRAGMENT) {
		packet->protocol = bytes[40];
		headers->part.offset = get16(bytes + 42) & 0xfff8u;
		headers->part.more = bytes[43] & 1;
		headers->fragment_id = get32(bytes + 44);
		header = 48;
	}
	if (packet->protocol == ICMP6)
		packet->protocol = IPPROTO_ICMP;
	headers->part.size = (total < size && total >= header ? total : size) - header;
	headers->bytes = bytes + header;
	return true;
}

bool packet_headers(struct headers *headers, const uint8_t *bytes, size_t size)
{
	memset(headers, 0, sizeof(*headers));
	if (size < 28)
		return false;
	return bytes[0] >> 4 == 4   ? headers_v4(headers, bytes, size)
	       : bytes[0] >> 4 == 6 ? headers_v6(headers, bytes, size)
				    : false;
}

static void read_icmp(struct packet *packet, const uint8_t *bytes)
{
	int family = !is_v4(&packet->source);

	packet->icmp = ICMP_REQUEST;
	while (packet->icmp < ICMP_OTHER && (icmp_numbers[packet->icmp][family][0] != bytes[0] ||
					     icmp_numbers[packet->icmp][family][1] != bytes[1]))
		packet->icmp++;
	if (packet->icmp == ICMP_REQUEST)
		packet->source_port = get16(bytes + 4);
	if (packet->icmp == ICMP_REPLY)
		packet->destination_port = get16(bytes + 4);
}

static void verify_sum(struct packet *packet, const uint8_t *bytes, size_t size, bool partial)
{
	uint32_t pseudo = pseudo_sum(packet, size);
	uint16_t field = get16(bytes + checksum_offset(packet->protocol));

	if (partial && field != checksum_fold(pseudo))
		packet->flaw = "wrong sum of the pseudo header";
	if (!partial && checksum_fold(checksum_add(pseudo, bytes, size)) != 0xffff)
		packet->flaw = "wrong checksum";
}

void packet_read_transport(struct packet *packet, const uint8_t *bytes, size_t size, bool partial,
			   bool quote)
{
	size_t header = header_size(packet->protocol);

	if (packet->protocol != IPPROTO_TCP && packet->protocol != IPPROTO_UDP &&
	    packet->protocol != IPPROTO_ICMP)
		return;
	if (size < (quote ? 8 : header)) {
		packet->flaw = "too short";
		return;
	}
	if (!quote)
		verify_sum(packet, bytes, size, partial);
	if (packet->protocol == IPPROTO_ICMP) {
		read_icmp(packet, bytes);
	} else {
		packet->source_port = get16(bytes);
		packet->destination_port = get16(bytes + 2);
	}
	if (packet->protocol == IPPROTO_TCP) {
		packet->sequence = get32(bytes + 4);
		packet->acknowledged = size < header ? 0 : get32(bytes + 8);
		packet->flags = size < header ? 0 : bytes[13];
		header = size < header ? size : (bytes[12] >> 4) * 4u;
	}
	packet->size = size < header ? 0 : size - header;
	if (packet->size > MAX_PAYLOAD)
		packet->size = MAX_PAYLOAD;
	memcpy(packet->payload, bytes + header, packet->size);
}

bool packet_quoted(struct packet *quoted, const struct packet *error)
{
	struct headers headers;

	if (!packet_headers(&headers, error->payload, error->size))
		return false;
	*quoted = headers.packet;
	if (!headers.part.offset)
		packet_read_transport(quoted, headers.bytes, headers.part.size, false, true);
	return true;
}

static const char *host_text(const struct in6_addr *address, char *text)
{
	if (is_v4(address))
		inet_ntop(AF_INET, &address->s6_addr[12], text, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, address, text, INET6_ADDRSTRLEN);
	return text;
}

const char *packet_text(const struct packet *packet, char *text)
{
	char source[INET6_ADDRSTRLEN], destination[INET6_ADDRSTRLEN], flags[8] = "";
	const char *name = packet->protocol == IPPROTO_TCP   ? "TCP"
			   : packet->protocol == IPPROTO_UDP ? "UDP"
							     : icmp_names[packet->icmp];

	for (int i = 0; packet->protocol == IPPROTO_TCP && i < 5; i++)
		if (packet->flags >> i & 1)
			strncat(flags, &"FSRPA"[i], 1);
	snprintf(text, PACKET_TEXT, "%s %s %u > %s %u %s", name,
		 host_text(&packet->source, source), packet->source_port,
		 host_text(&packet->destination, destination), packet->destination_port, flags);
	return text;
}
