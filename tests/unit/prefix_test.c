/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * prefix_test.c - pools as Docker writes them, and which addresses of them interfaces may have.
 */
#include "cni_testing.h"

#include "lib/address.h"

static struct prefix read_prefix(const char *text)
{
	struct prefix prefix;

	assert_int_equal(prefix_parse(text, &prefix), 0);
	return prefix;
}

static void expect_text(const char *text, const char *expected)
{
	struct prefix prefix = read_prefix(text);
	char formatted[PREFIX_TEXT_SIZE];

	assert_string_equal(prefix_format(&prefix, formatted), expected);
}

TEST(host_bits_are_dropped, "host bits are dropped")
{
	struct prefix prefix;

	expect_text("10.91.0.5/24", "10.91.0.0/24");
	expect_text("10.91.0.5/32", "10.91.0.5/32");
	expect_text("255.255.255.255/1", "128.0.0.0/1");
	expect_text("10.0.0.1/0", "0.0.0.0/0");
	expect_text("fd00:91::7/64", "fd00:91::/64");
	expect_text("fd00:91::7/127", "fd00:91::6/127");
	expect_text("::1/0", "::/0");
	assert_int_equal(prefix_parse("10.91.0.0", &prefix), -1);
	assert_int_equal(prefix_parse("10.91.0.0/33", &prefix), -1);
	assert_int_equal(prefix_parse("", &prefix), -1);
}

static bool overlap(const char *one, const char *other)
{
	struct prefix first = read_prefix(one), second = read_prefix(other);

	assert_int_equal(prefix_overlaps(&first, &second), prefix_overlaps(&second, &first));
	return prefix_overlaps(&first, &second);
}

TEST(prefixes_overlap, "prefixes overlap")
{
	assert_true(overlap("10.91.0.0/24", "10.91.0.0/24"));
	assert_true(overlap("10.0.0.0/8", "10.91.0.0/24"));
	assert_false(overlap("10.91.0.0/24", "10.91.1.0/24"));
	assert_false(overlap("10.91.0.0/24", "fd00::/8"));
	assert_true(overlap("fd00::/8", "fd00:91::/64"));
}

static void expect_usable(const char *whole, const char *part, const char *from, const char *to)
{
	struct prefix all = read_prefix(whole), some = read_prefix(part);
	uint8_t first[CNI_ADDRESS_SIZE], last[CNI_ADDRESS_SIZE];
	char text[CNI_ADDRESS_TEXT_SIZE];

	prefix_usable(&all, &some, first, last);
	assert_string_equal(cni_address_format(first, text), from);
	assert_string_equal(cni_address_format(last, text), to);
}

TEST(network_and_broadcast_are_not_usable, "network and broadcast are not usable")
{
	expect_usable("10.91.0.0/24", "10.91.0.0/24", "10.91.0.1", "10.91.0.254");
	expect_usable("10.91.0.0/24", "10.91.0.0/25", "10.91.0.1", "10.91.0.127");
	expect_usable("10.91.0.0/24", "10.91.0.128/25", "10.91.0.128", "10.91.0.254");
	expect_usable("10.91.0.0/16", "10.91.1.0/24", "10.91.1.0", "10.91.1.255");
	expect_usable("fd00::/64", "fd00::/64", "fd00::1", "fd00::ffff:ffff:ffff:ffff");
	expect_usable("10.91.0.0/30", "10.91.0.0/30", "10.91.0.1", "10.91.0.2");
	expect_usable("10.91.0.2/31", "10.91.0.2/31", "10.91.0.2", "10.91.0.3");
	expect_usable("10.91.0.7/32", "10.91.0.7/32", "10.91.0.7", "10.91.0.7");
	expect_usable("fd00::2/127", "fd00::2/127", "fd00::2", "fd00::3");
}
