/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * noticed.h - marks of what has been used at least once; without a mark the lookup is skipped. A
 * mark is never cleared: whoever did so would not see what another CPU begins meanwhile.
 */
#pragma once

#include "address.h"

INLINE void bits_mark(__u64 *bits, __u32 number)
{
	__u64 bit = 1ULL << (number & 63);

	if (!(bits[number >> 6] & bit))
		__sync_fetch_and_or(&bits[number >> 6], bit);
}

INLINE bool bits_have(const __u64 *bits, __u32 number)
{
	return bits[number >> 6] >> (number & 63) & 1;
}

/* kind: a member of struct noticed: a bitmap, or a single word (number 0). */
#define noticed_mark(kind, number) bits_mark((__u64 *)&SINGLE(noticed)->kind, number)

/* False: this number has never been marked. */
#define noticed_has(kind, number) bits_have((const __u64 *)&SINGLE(noticed)->kind, number)

/* A host has few external addresses, so they rarely collide. */
INLINE __u32 noticed_address_bit(const __u8 *address)
{
	return address_hash(address_halves(address)[0], address_halves(address)[1]) %
	       (EXTERNAL_ADDRESS_WORDS * 64);
}
