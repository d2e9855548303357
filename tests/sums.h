/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sums.h - the checksums of packets, from their RFCs; the programs under test have others. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The Internet checksum (RFC 1071), not yet folded. Only the last block may have an odd size, as if
 * a zero followed. */
static inline uint32_t checksum_add(uint32_t sum, const void *data, size_t size)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < size; i++)
		sum += i % 2 ? bytes[i] : (uint32_t)bytes[i] << 8;
	return sum;
}

/* In host byte order; a checksum is its complement. */
static inline uint16_t checksum_fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* CRC32c (RFC 9260 appendix A), a bit at a time, over the bytes and so many zeros after them.
 * SCTP's begins with all ones, and is the complement, in little endian. */
static inline uint32_t crc32c_add(uint32_t crc, const void *data, size_t size, size_t zeros)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < size + zeros; i++) {
		crc ^= i < size ? bytes[i] : 0;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return crc;
}
