/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* seal.c - the seal as bpf/seal.h defines it: SipHash-1-3 (Aumasson and Bernstein, 2012) of sender,
 * source port and protocol. Written for the tests, so that a mistake there is not repeated. */
#include "seal.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>

#define DOMAIN 0x7365616cULL

struct source {
	uint8_t address[16];
	uint16_t port;
	uint8_t protocol;
};

static uint64_t rotated(uint64_t word, int bits)
{
	return word << bits | word >> (64 - bits);
}

static void mix(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = rotated(v[1], 13) ^ v[0];
	v[3] = rotated(v[3], 16) ^ v[2];
	v[0] = rotated(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = rotated(v[1], 17) ^ v[2];
	v[3] = rotated(v[3], 21) ^ v[0];
	v[2] = rotated(v[2], 32);
}

static uint64_t hash(uint64_t secret, const uint64_t *words, int count)
{
	uint64_t key0 = secret, key1 = ~secret;
	uint64_t v[4] = {key0 ^ 0x736f6d6570736575, key1 ^ 0x646f72616e646f6d,
			 key0 ^ 0x6c7967656e657261, key1 ^ 0x7465646279746573};

	for (int i = 0; i < count; i++) {
		v[3] ^= words[i];
		mix(v);
		v[0] ^= words[i];
	}
	v[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		mix(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* The requester of an echo or a timestamp has the identifier as its port. */
static uint16_t port_of(uint8_t protocol, const uint8_t *transport)
{
	uint8_t type = transport[0];
	bool requests = protocol == IPPROTO_ICMP ? type == 8 || type == 13 : type == 128;

	switch (protocol) {
	case IPPROTO_TCP:
	case IPPROTO_UDP:
	case IPPROTO_UDPLITE:
	case IPPROTO_SCTP:
		return (uint16_t)(transport[0] << 8 | transport[1]);
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		return requests ? (uint16_t)(transport[4] << 8 | transport[5]) : 0;
	default:
		return 0;
	}
}

/* Returns the length of the headers, or 0. */
static size_t read_ipv4(const uint8_t *ip, struct source *source)
{
	memcpy(source->address, (const uint8_t[12]){[10] = 0xff, [11] = 0xff}, 12);
	memcpy(source->address + 12, ip + 12, 4);
	source->protocol = ip[9];
	return (ip[0] & 15u) * 4u;
}

static size_t read_ipv6(const uint8_t *ip, size_t length, struct source *source)
{
	size_t offset = 40;

	memcpy(source->address, ip + 8, 16);
	source->protocol = ip[6];
	while (offset + 8 <= length &&
	       (source->protocol == IPPROTO_HOPOPTS || source->protocol == IPPROTO_ROUTING ||
		source->protocol == IPPROTO_DSTOPTS || source->protocol == IPPROTO_FRAGMENT)) {
		size_t size = source->protocol == IPPROTO_FRAGMENT ? 8 : 8u + ip[offset + 1] * 8u;

		source->protocol = ip[offset];
		offset += size;
	}
	return offset;
}

uint32_t seal_of(uint64_t secret, const uint8_t *bytes, size_t length, size_t network)
{
	const uint8_t *ip = bytes + network;
	struct source source = {0};
	uint64_t words[3];
	size_t offset;

	if (network + 20 > length)
		return 0;
	length -= network;
	if (ip[0] >> 4 == 4)
		offset = read_ipv4(ip, &source);
	else if (ip[0] >> 4 == 6 && length >= 40)
		offset = read_ipv6(ip, length, &source);
	else
		return 0;
	if (offset + 8 <= length)
		source.port = port_of(source.protocol, ip + offset);
	memcpy(words, source.address, 16);
	words[2] = (uint64_t)source.port << 32 | source.protocol;
	return (uint32_t)hash(secret ^ DOMAIN, words, 3);
}
