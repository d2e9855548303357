/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * address.h - IP addresses of both families in one type.
 *
 * 16 bytes in network order, an IPv4 address as ::ffff:a.b.c.d (RFC 4291 2.5.5.2),
 * as in the maps. Names are never resolved.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define CNI_ADDRESS_SIZE 16
#define CNI_ADDRESS_TEXT_SIZE INET6_ADDRSTRLEN

/* The unspecified addresses, as in the map portmaps. */
extern const uint8_t cni_address_any_ipv4[CNI_ADDRESS_SIZE];      /* ::ffff:0.0.0.0 */
extern const uint8_t cni_address_any_ipv6[CNI_ADDRESS_SIZE];      /* :: */
extern const uint8_t cni_address_loopback_ipv4[CNI_ADDRESS_SIZE]; /* ::ffff:127.0.0.1 */
extern const uint8_t cni_address_loopback_ipv6[CNI_ADDRESS_SIZE]; /* ::1 */

/* Returns whether it is one of the above. */
bool cni_address_is_any(const uint8_t address[CNI_ADDRESS_SIZE]);
bool cni_address_is_ipv4(const uint8_t address[CNI_ADDRESS_SIZE]);
bool cni_address_is_loopback(const uint8_t address[CNI_ADDRESS_SIZE]);
bool cni_address_is_link_local(const uint8_t address[CNI_ADDRESS_SIZE]);

/* Returns whether the address has the prefix, whose length is in its own family (0-32, 0-128): ::/0
 * holds no address of IPv4. */
bool cni_address_has_prefix(const uint8_t address[CNI_ADDRESS_SIZE],
			    const uint8_t prefix[CNI_ADDRESS_SIZE], unsigned int length);

/* Makes it of 4 or 16 bytes, as they stand in packets. */
void cni_address_make(uint8_t address[CNI_ADDRESS_SIZE], const void *bytes, size_t size);

/* Sets or clears all bits behind the first `length` of the 128. */
void cni_address_fill(uint8_t address[CNI_ADDRESS_SIZE], unsigned int length, bool ones);

/* Reads "1.2.3.4", "fd00::1" or "::ffff:1.2.3.4" (which is the IPv4 address), without brackets,
 * zone, prefix or blanks. 0, or -1 without an error, as the caller knows which key the address was
 * in. */
int cni_address_parse(const char *text, uint8_t address[CNI_ADDRESS_SIZE]);

/* Reads "10.8.0.3/24": also the prefix length, in the address's own family (0-32, 0-128); of
 * ::ffff:10.1.0.1/120 it is 24. 0 or -1. */
int cni_address_parse_cidr(const char *text, uint8_t address[CNI_ADDRESS_SIZE],
			   uint8_t *prefix_length);

/* Writes "1.2.3.4" or "fd00::1"; returns text. */
const char *cni_address_format(const uint8_t address[CNI_ADDRESS_SIZE],
			       char text[CNI_ADDRESS_TEXT_SIZE]);

/* Writes it with a port. Returns the size. */
socklen_t socket_address_make(struct sockaddr_storage *made,
			      const uint8_t address[CNI_ADDRESS_SIZE], uint16_t port);

/* Reads the address. False: it is of neither IPv4 nor IPv6. */
bool socket_address_read(const struct sockaddr *from, uint8_t address[CNI_ADDRESS_SIZE]);

/* --- prefixes ------------------------------------------------------------------------------- */

#define PREFIX_IPV4_BITS 96 /* before an IPv4 address in the 128 bits */
#define PREFIX_TEXT_SIZE (CNI_ADDRESS_TEXT_SIZE + 4)

struct prefix {
	uint8_t address[CNI_ADDRESS_SIZE]; /* without bits of the host */
	uint8_t length;                    /* of the 128 bits, for IPv4, too */
};

/* Drops the bits of the host, as Docker does. 0, or -1 without an error. */
int prefix_parse(const char *text, struct prefix *prefix);
/* Returns text. */
const char *prefix_format(const struct prefix *prefix, char text[PREFIX_TEXT_SIZE]);

/* Writes it as a name of a file or a CNI network: "10.91.0.0_24", "fd00-91--_64"; returns text. */
char *prefix_format_name(const struct prefix *prefix, char text[PREFIX_TEXT_SIZE]);

bool prefix_is_ipv4(const struct prefix *prefix);
/* Returns the length in the prefix's own family. */
int prefix_own_length(const struct prefix *prefix);
bool prefix_contains(const struct prefix *prefix, const uint8_t address[CNI_ADDRESS_SIZE]);
bool prefix_overlaps(const struct prefix *one, const struct prefix *other);
bool prefix_equals(const struct prefix *one, const struct prefix *other);

/* Gets the addresses of `part` that interfaces of `whole` may have: all but the first one of
 * `whole` and, for IPv4, its last one, unless it has but one or two. */
void prefix_usable(const struct prefix *whole, const struct prefix *part,
		   uint8_t first[CNI_ADDRESS_SIZE], uint8_t last[CNI_ADDRESS_SIZE]);
