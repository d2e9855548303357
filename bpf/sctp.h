/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sctp.h - SCTP's header, and the update of its CRC32c when its ports change.
 *
 * Included after vmlinux.h, or by tests after <linux/types.h>.
 *
 * A CRC is linear: crc(packet ^ change) = crc(packet) ^ remainder(change), where the remainder
 * starts from 0 and has no final inversion. If only the first four bytes differ, the remainder is
 * that word, read as little endian and shifted to the end of the packet: multiplied by x^(8 *
 * length) modulo CRC32c's polynomial. No byte after the change is read.
 */
#pragma once

/* RFC 9260 3.1; chunks follow. */
struct sctp_header {
	__be16 source_port;
	__be16 destination_port;
	__be32 verification_tag;
	__u32 checksum; /* little endian */
};

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the CRC32c is used as it was loaded");

/* RFC 9260 appendix A, bits reflected: bit 31 is x^0, bit 0 is x^31. */
#define CRC32C_POLYNOMIAL 0x82f63b78

/* x^(8 * 2^n) for n = 0 to 15: each is the square of its predecessor. */
static const __u32 crc32c_powers[] = {
	0x00800000, 0x00008000, 0x82f63b78, 0x6ea2d55c, 0x18b8ea18, 0x510ac59a,
	0xb82be955, 0xb8fdb1e7, 0x88e56f72, 0x74c360a4, 0xe4172b16, 0x0d65762a,
	0x35d73a62, 0x28461564, 0xbf455269, 0xe2ea32dc,
};

/* Returns the product of two remainders. Branchless, and verified once by itself. */
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

/* Returns the change of the CRC of `length` bytes, at most 65535, whose first four bytes change by
 * `change` (exclusive or, read as little endian). */
__attribute__((noinline)) __u32 crc32c_change(__u32 change, __u32 length)
{
	for (int i = 0; i < 16; i++)
		if (length >> i & 1)
			change = crc32c_multiply(change, crc32c_powers[i]);
	return change;
}

/* Returns the checksum of `length` bytes whose ports change by `change`. 0 stays 0, as a sender
 * leaves it where the interface is to compute the CRC (any veth), and programs cannot see that. One
 * packet in 2^32 has a real CRC of 0, is mistaken for such a packet, and lost. */
static __always_inline __u32 sctp_checksum(__u32 checksum, __u32 change, __u32 length)
{
	return checksum ? checksum ^ crc32c_change(change, length) : 0;
}
