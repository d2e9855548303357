/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* digest.h - the digest FNV-1a of 64 bits, which is not cryptographic. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define DIGEST_OF_NOTHING 0xcbf29ce484222325

static inline uint64_t digest_add(uint64_t digest, const void *data, size_t size)
{
	const unsigned char *bytes = data;

	for (size_t i = 0; i < size; i++)
		digest = (digest ^ bytes[i]) * 0x100000001b3;
	return digest;
}
