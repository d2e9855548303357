/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * prefix.h - subnets, written as ADDRESS/LENGTH.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/address.h"

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
