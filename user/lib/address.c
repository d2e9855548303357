/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* address.c - IP addresses of both families in one type. */
#include "lib/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IPV4_OFFSET 12 /* of the IPv4 address in the 16 bytes */
#define IPV4_PREFIX_BITS 96

const uint8_t cni_address_any_ipv4[CNI_ADDRESS_SIZE] = {[10] = 0xff, [11] = 0xff};
const uint8_t cni_address_any_ipv6[CNI_ADDRESS_SIZE] = {0};
const uint8_t cni_address_loopback_ipv4[CNI_ADDRESS_SIZE] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
const uint8_t cni_address_loopback_ipv6[CNI_ADDRESS_SIZE] = {[15] = 1};

bool cni_address_is_any(const uint8_t address[CNI_ADDRESS_SIZE])
{
	return !memcmp(address, cni_address_any_ipv4, CNI_ADDRESS_SIZE) ||
	       !memcmp(address, cni_address_any_ipv6, CNI_ADDRESS_SIZE);
}

bool cni_address_is_ipv4(const uint8_t address[CNI_ADDRESS_SIZE])
{
	return !memcmp(address, cni_address_any_ipv4, IPV4_OFFSET);
}

bool cni_address_is_loopback(const uint8_t address[CNI_ADDRESS_SIZE])
{
	if (cni_address_is_ipv4(address))
		return address[IPV4_OFFSET] == 127;
	return !memcmp(address, &in6addr_loopback, CNI_ADDRESS_SIZE);
}

bool cni_address_is_link_local(const uint8_t address[CNI_ADDRESS_SIZE])
{
	if (cni_address_is_ipv4(address))
		return address[IPV4_OFFSET] == 169 && address[IPV4_OFFSET + 1] == 254;
	return address[0] == 0xfe && (address[1] & 0xc0) == 0x80;
}

bool cni_address_has_prefix(const uint8_t address[CNI_ADDRESS_SIZE],
			    const uint8_t prefix[CNI_ADDRESS_SIZE], unsigned int length)
{
	bool ipv4 = cni_address_is_ipv4(prefix);
	unsigned int bits = length + (ipv4 ? IPV4_PREFIX_BITS : 0);
	unsigned int bytes = bits / 8, rest = bits % 8;

	if (cni_address_is_ipv4(address) != ipv4 || bits > CNI_ADDRESS_SIZE * 8 ||
	    memcmp(address, prefix, bytes))
		return false;
	return !rest || !((address[bytes] ^ prefix[bytes]) >> (8 - rest));
}

void cni_address_make(uint8_t address[CNI_ADDRESS_SIZE], const void *bytes, size_t size)
{
	memcpy(address, cni_address_any_ipv4, CNI_ADDRESS_SIZE);
	if (size <= CNI_ADDRESS_SIZE)
		memcpy(address + CNI_ADDRESS_SIZE - size, bytes, size);
}

void cni_address_fill(uint8_t address[CNI_ADDRESS_SIZE], unsigned int length, bool ones)
{
	for (unsigned int bit = length; bit < 8 * CNI_ADDRESS_SIZE; bit++) {
		uint8_t mask = (uint8_t)(0x80 >> bit % 8), *byte = &address[bit / 8];

		*byte = (uint8_t)(ones ? *byte | mask : *byte & ~mask);
	}
}

int cni_address_parse(const char *text, uint8_t address[CNI_ADDRESS_SIZE])
{
	uint8_t parsed[CNI_ADDRESS_SIZE];

	memcpy(parsed, cni_address_any_ipv4, IPV4_OFFSET);
	if (inet_pton(AF_INET, text, parsed + IPV4_OFFSET) != 1 &&
	    inet_pton(AF_INET6, text, parsed) != 1)
		return -1;
	memcpy(address, parsed, CNI_ADDRESS_SIZE);
	return 0;
}

int cni_address_parse_cidr(const char *text, uint8_t address[CNI_ADDRESS_SIZE],
			   uint8_t *prefix_length)
{
	const char *slash = strchr(text, '/');
	char bare[CNI_ADDRESS_TEXT_SIZE];
	uint8_t parsed[CNI_ADDRESS_SIZE];
	size_t digits;
	int bits;

	if (!slash || (size_t)(slash - text) >= sizeof(bare))
		return -1;
	memcpy(bare, text, (size_t)(slash - text));
	bare[slash - text] = '\0';
	digits = strspn(slash + 1, "0123456789");
	if (!digits || digits > 3 || slash[1 + digits] || cni_address_parse(bare, parsed))
		return -1;
	bits = atoi(slash + 1);
	if (cni_address_is_ipv4(parsed) && strchr(bare, ':'))
		bits -= IPV4_PREFIX_BITS;
	if (bits < 0 || bits > (cni_address_is_ipv4(parsed) ? 32 : 128))
		return -1;
	memcpy(address, parsed, CNI_ADDRESS_SIZE);
	*prefix_length = (uint8_t)bits;
	return 0;
}

const char *cni_address_format(const uint8_t address[CNI_ADDRESS_SIZE],
			       char text[CNI_ADDRESS_TEXT_SIZE])
{
	bool ipv4 = cni_address_is_ipv4(address);

	/* Cannot fail: the family is known and the buffer large enough. */
	inet_ntop(ipv4 ? AF_INET : AF_INET6, ipv4 ? address + IPV4_OFFSET : address, text,
		  CNI_ADDRESS_TEXT_SIZE);
	return text;
}

socklen_t socket_address_make(struct sockaddr_storage *made,
			      const uint8_t address[CNI_ADDRESS_SIZE], uint16_t port)
{
	struct sockaddr_in *ipv4 = (struct sockaddr_in *)made;
	struct sockaddr_in6 *ipv6 = (struct sockaddr_in6 *)made;

	memset(made, 0, sizeof(*made));
	if (cni_address_is_ipv4(address)) {
		ipv4->sin_family = AF_INET;
		ipv4->sin_port = htons(port);
		memcpy(&ipv4->sin_addr, address + 12, sizeof(ipv4->sin_addr));
		return sizeof(*ipv4);
	}
	ipv6->sin6_family = AF_INET6;
	ipv6->sin6_port = htons(port);
	memcpy(&ipv6->sin6_addr, address, sizeof(ipv6->sin6_addr));
	return sizeof(*ipv6);
}

bool socket_address_read(const struct sockaddr *from, uint8_t address[CNI_ADDRESS_SIZE])
{
	const struct sockaddr_in *ipv4 = (const void *)from;
	const struct sockaddr_in6 *ipv6 = (const void *)from;

	if (from->sa_family == AF_INET)
		cni_address_make(address, &ipv4->sin_addr, sizeof(ipv4->sin_addr));
	else if (from->sa_family == AF_INET6)
		cni_address_make(address, &ipv6->sin6_addr, sizeof(ipv6->sin6_addr));
	return from->sa_family == AF_INET || from->sa_family == AF_INET6;
}

/* --- prefixes ------------------------------------------------------------------------------- */

#define WHOLE_LENGTH 127 /* from here on each address is an interface's (RFC 3021, RFC 6164) */

/* The first or the last address with the prefix. */
static void fill_host(const struct prefix *prefix, bool ones, uint8_t address[CNI_ADDRESS_SIZE])
{
	memcpy(address, prefix->address, CNI_ADDRESS_SIZE);
	cni_address_fill(address, prefix->length, ones);
}

int prefix_parse(const char *text, struct prefix *prefix)
{
	struct prefix parsed;

	if (cni_address_parse_cidr(text, parsed.address, &parsed.length))
		return -1;
	if (cni_address_is_ipv4(parsed.address))
		parsed.length = (uint8_t)(parsed.length + PREFIX_IPV4_BITS);
	cni_address_fill(parsed.address, parsed.length, false);
	*prefix = parsed;
	return 0;
}

bool prefix_is_ipv4(const struct prefix *prefix)
{
	return cni_address_is_ipv4(prefix->address) && prefix->length >= PREFIX_IPV4_BITS;
}

int prefix_own_length(const struct prefix *prefix)
{
	return prefix_is_ipv4(prefix) ? prefix->length - PREFIX_IPV4_BITS : prefix->length;
}

const char *prefix_format(const struct prefix *prefix, char text[PREFIX_TEXT_SIZE])
{
	char address[CNI_ADDRESS_TEXT_SIZE];

	snprintf(text, PREFIX_TEXT_SIZE, "%s/%d", cni_address_format(prefix->address, address),
		 prefix_own_length(prefix));
	return text;
}

char *prefix_format_name(const struct prefix *prefix, char text[PREFIX_TEXT_SIZE])
{
	prefix_format(prefix, text);
	for (char *c = text; *c; c++)
		*c = (char)(*c == ':' ? '-' : *c == '/' ? '_' : *c);
	return text;
}

bool prefix_contains(const struct prefix *prefix, const uint8_t address[CNI_ADDRESS_SIZE])
{
	return cni_address_has_prefix(address, prefix->address,
				      (unsigned int)prefix_own_length(prefix));
}

bool prefix_overlaps(const struct prefix *one, const struct prefix *other)
{
	return one->length <= other->length ? prefix_contains(one, other->address)
					    : prefix_contains(other, one->address);
}

bool prefix_equals(const struct prefix *one, const struct prefix *other)
{
	return one->length == other->length &&
	       !memcmp(one->address, other->address, CNI_ADDRESS_SIZE);
}

/* To the next address, or to the one before. */
static void step_address(uint8_t address[CNI_ADDRESS_SIZE], int by)
{
	uint8_t overflow = by > 0 ? 0 : 0xff;

	for (int i = CNI_ADDRESS_SIZE - 1; i >= 0; i--) {
		address[i] = (uint8_t)(address[i] + by);
		if (address[i] != overflow)
			return;
	}
}

void prefix_usable(const struct prefix *whole, const struct prefix *part,
		   uint8_t first[CNI_ADDRESS_SIZE], uint8_t last[CNI_ADDRESS_SIZE])
{
	uint8_t end[CNI_ADDRESS_SIZE];

	fill_host(part, false, first);
	fill_host(part, true, last);
	fill_host(whole, true, end);
	if (whole->length >= WHOLE_LENGTH)
		return;
	if (!memcmp(first, whole->address, CNI_ADDRESS_SIZE))
		step_address(first, 1);
	if (prefix_is_ipv4(whole) && !memcmp(last, end, CNI_ADDRESS_SIZE))
		step_address(last, -1);
}
