/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * crc32c.h - what a change at the front of a packet does to the CRC32c over all of it.
 *
 * BPF code includes this file after vmlinux.h, tests after <linux/types.h>.
 *
 * A CRC is linear: crc(packet ^ change) = crc(packet) ^ remainder(change), where the
 * remainder starts from 0 and has no final inversion. Where only the first four bytes
 * differ, it is that word, read as little endian, moved on to the end of the packet:
 * multiplied by x^(8 * length) modulo CRC32c's polynomial. No byte behind the change is
 * looked at.
 */
#ifndef BPF_PORTMAP_CRC32C_H
#define BPF_PORTMAP_CRC32C_H

/* Of RFC 9260 appendix A, bits reflected: bit 31 is x^0, bit 0 is x^31. */
#define CRC32C_POLYNOMIAL 0x82f63b78

/* x^(8 * 2^n) for n = 0 to 15: each is the square of the one before, the first is 1 moved
 * by eight bits. As immediates: a table would be one more map to load and keep. */
#define CRC32C_POWERS(X) \
	X(0x00800000) \
	X(0x00008000) \
	X(0x82f63b78) \
	X(0x6ea2d55c) \
	X(0x18b8ea18) \
	X(0x510ac59a) \
	X(0xb82be955) \
	X(0xb8fdb1e7) \
	X(0x88e56f72) \
	X(0x74c360a4) \
	X(0xe4172b16) \
	X(0x0d65762a) \
	X(0x35d73a62) \
	X(0x28461564) \
	X(0xbf455269) \
	X(0xe2ea32dc)

/* The product of two remainders. Without branches, and verified once by itself: it is
 * called from sixteen places. */
__attribute__((noinline)) __u32 crc32c_multiply(__u32 a, __u32 b)
{
	__u32 product = 0;

	for (int i = 0; i < 32; i++) {
		product ^= a * (b >> 31);
		b <<= 1;
		a = (a >> 1) ^ CRC32C_POLYNOMIAL * (a & 1);
	}
	return product;
}

/* What becomes of the CRC of `length` bytes, at most 65535, whose first four change. `change`
 * is the exclusive or of what they were and what they are, read as little endian. */
__attribute__((noinline)) __u32 crc32c_change(__u32 change, __u32 length)
{
#define X(power) \
	if (length & 1) \
		change = crc32c_multiply(change, power); \
	length >>= 1;
	CRC32C_POWERS(X)
#undef X
	return change;
}

#endif
