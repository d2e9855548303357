/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* crc32c_test.c - the change of a CRC32c against the CRC32c of everything. */
#include "cni_testing.h"

#include <linux/types.h>

#include "../sums.h"
#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* functions of a BPF program */
#include "../../bpf/sctp.h"

#define LONGEST 65535

static uint32_t crc32c(const uint8_t *bytes, size_t size)
{
	return ~crc32c_add(~0u, bytes, size, 0);
}

static void expect_change(uint8_t *packet, uint32_t change, size_t length)
{
	uint32_t before = crc32c(packet, length), word;

	memcpy(&word, packet, sizeof(word));
	word ^= change;
	memcpy(packet, &word, sizeof(word));
	assert_int_equal(before ^ crc32c(packet, length), crc32c_change(change, (__u32)length));
}

/* RFC 3720 B.4 */
TEST(test_the_oracle_itself, "the oracle itself")
{
	uint8_t zeros[32] = {0};

	assert_int_equal(0x8a9136aa, crc32c(zeros, sizeof(zeros)));
}

/* From the shortest SCTP packet; beyond that, every bit of the length alone and all together. */
TEST(test_change_of_every_length, "change of every length")
{
	uint8_t *packet = malloc(LONGEST);

	assert_non_null(packet);
	srandom(1);
	for (size_t i = 0; i < LONGEST; i++)
		packet[i] = (uint8_t)random();
	for (size_t length = 12; length < 2100; length++)
		expect_change(packet, (uint32_t)random() << 1 ^ (uint32_t)random(), length);
	for (size_t length = 4096; length < LONGEST; length *= 2)
		expect_change(packet, (uint32_t)random(), length);
	for (int i = 0; i < 100; i++)
		expect_change(packet, (uint32_t)random(), 12 + (size_t)random() % (LONGEST - 12));
	expect_change(packet, 0xffffffff, LONGEST);
	free(packet);
}

TEST(test_every_bit_of_the_change, "every bit of the change")
{
	uint8_t packet[1452];

	memset(packet, 'x', sizeof(packet));
	for (int bit = 0; bit < 32; bit++)
		expect_change(packet, 1U << bit, sizeof(packet));
	assert_int_equal(0, crc32c_change(0, sizeof(packet)));
}

/* Each power is the square of the one before, and the first is x^8. */
TEST(test_powers, "powers")
{
	const uint32_t *powers = crc32c_powers;

	assert_int_equal(0x80000000 >> 8, powers[0]);
	for (size_t i = 1; i < sizeof(crc32c_powers) / sizeof(powers[0]); i++)
		assert_int_equal(crc32c_multiply(powers[i - 1], powers[i - 1]), powers[i]);
}
