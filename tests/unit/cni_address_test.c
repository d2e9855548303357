/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cni_address_test.c - addresses of both families in one type.
 */
#include "cni_testing.h"

#include "lib/address.h"

struct address_row {
	const char *name;
	const char *text;
	const char *formatted; /* NULL: refused */
	bool ipv4;
};

static const struct address_row address_rows[] = {
	{"IPv4 address", "10.1.0.5", "10.1.0.5", true},
	{"any IPv4 address", "0.0.0.0", "0.0.0.0", true},
	{"IPv6 address", "fd00:8::4", "fd00:8::4", false},
	{"IPv6 address is written short", "FD00:0008:0:0:0:0:0:0004", "fd00:8::4", false},
	{"any IPv6 address", "::", "::", false},
	{"IPv4 in IPv6 is IPv4", "::ffff:1.2.3.4", "1.2.3.4", true},
	{"IPv4 in IPv6 in hexadecimal is IPv4", "::ffff:102:304", "1.2.3.4", true},
	{"IPv4-compatible is IPv6 (RFC 4291 2.5.5.1)", "::1.2.3.4", "::1.2.3.4", false},
	{"empty", "", NULL, false},
	{"a word", "junk", NULL, false},
	{"a host name", "localhost", NULL, false},
	{"a prefix", "1.2.3.0/24", NULL, false},
	{"a blank before", " 1.2.3.4", NULL, false},
	{"a blank after", "1.2.3.4 ", NULL, false},
	{"brackets", "[::1]", NULL, false},
	{"a zone", "fe80::1%eth0", NULL, false},
	{"three numbers", "1.2.3", NULL, false},
	{"one number", "16909060", NULL, false},
	{"octal", "010.1.2.3", NULL, false},
	{"hexadecimal", "0x1.2.3.4", NULL, false},
	{"number too big", "1.2.3.256", NULL, false},
	{"nine groups", "1:2:3:4:5:6:7:8:9", NULL, false},
	{"three colons", ":::", NULL, false},
	{"five digits", "fd000::1", NULL, false},
};

ROWS(address_rows, parses_and_formats)
{
	uint8_t address[CNI_ADDRESS_SIZE] = {0xaa};
	char text[CNI_ADDRESS_TEXT_SIZE];

	assert_int_equal(cni_address_parse(row->text, address), row->formatted ? 0 : -1);
	if (!row->formatted) {
		assert_int_equal(address[0], 0xaa);
		return;
	}
	assert_string_equal(cni_address_format(address, text), row->formatted);
	assert_int_equal(cni_address_is_ipv4(address), row->ipv4);
}

static const struct {
	const char *name;
	const char *text;
	const char *formatted; /* NULL: refused */
	int prefix_length;
} cidr_rows[] = {
	{"CIDR IPv4", "10.1.0.5/24", "10.1.0.5", 24},
	{"CIDR host bits are kept", "10.1.0.255/8", "10.1.0.255", 8},
	{"CIDR /0", "0.0.0.0/0", "0.0.0.0", 0},
	{"CIDR /32", "10.1.0.5/32", "10.1.0.5", 32},
	{"CIDR IPv6", "fd00:8::4/64", "fd00:8::4", 64},
	{"CIDR /128", "fd00:8::4/128", "fd00:8::4", 128},
	{"CIDR the longest address", "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255/128",
	 "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 128},
	{"CIDR of IPv4 in IPv6", "::ffff:10.1.0.1/120", "10.1.0.1", 24},
	{"CIDR of IPv4 in IPv6 /96", "::ffff:10.1.0.1/96", "10.1.0.1", 0},
	{"CIDR of IPv4 in IPv6 cut above the IPv4 address", "::ffff:10.1.0.1/95", NULL, 0},
	{"CIDR IPv4 /33", "10.1.0.5/33", NULL, 0},
	{"CIDR IPv4 /120", "10.1.0.5/120", NULL, 0},
	{"CIDR IPv6 /129", "fd00::1/129", NULL, 0},
	{"CIDR without prefix length", "10.1.0.5", NULL, 0},
	{"CIDR with an empty prefix length", "10.1.0.5/", NULL, 0},
	{"CIDR /-1", "10.1.0.5/-1", NULL, 0},
	{"CIDR /+24", "10.1.0.5/+24", NULL, 0},
	{"CIDR with a mask", "10.1.0.5/255.255.255.0", NULL, 0},
	{"CIDR with two slashes", "10.1.0.5/24/24", NULL, 0},
	{"CIDR with an overflow", "10.1.0.5/4294967320", NULL, 0},
	{"CIDR without address", "/24", NULL, 0},
	{"CIDR of a very long text",
	 "1111111111111111111111111111111111111111111111111111111111111111111111111/24", NULL, 0},
	{"CIDR empty", "", NULL, 0},
};

ROWS(cidr_rows, parses_cidr)
{
	uint8_t address[CNI_ADDRESS_SIZE];
	uint8_t prefix_length = 0;
	char text[CNI_ADDRESS_TEXT_SIZE];

	assert_int_equal(cni_address_parse_cidr(row->text, address, &prefix_length),
			 row->formatted ? 0 : -1);
	if (!row->formatted)
		return;
	assert_string_equal(cni_address_format(address, text), row->formatted);
	assert_int_equal(prefix_length, row->prefix_length);
}

static const struct address_row loopback_rows[] = {
	{"loopback 127.0.0.1", "127.0.0.1", "loopback", true},
	{"loopback 127.255.0.9", "127.255.0.9", "loopback", true},
	{"loopback ::1", "::1", "loopback", false},
	{"loopback ::ffff:127.0.0.1", "::ffff:127.0.0.1", "loopback", true},
	{"no loopback 126.0.0.1", "126.0.0.1", NULL, true},
	{"no loopback ::", "::", NULL, false},
	{"no loopback ::2", "::2", NULL, false},
};

ROWS(loopback_rows, knows_loopback)
{
	uint8_t address[CNI_ADDRESS_SIZE];

	assert_int_equal(cni_address_parse(row->text, address), 0);
	assert_int_equal(cni_address_is_loopback(address), row->formatted != NULL);
}

TEST(any_addresses_are_those_of_the_maps, "any addresses are those of the maps")
{
	uint8_t address[CNI_ADDRESS_SIZE];

	assert_int_equal(cni_address_parse("0.0.0.0", address), 0);
	assert_memory_equal(address, cni_address_any_ipv4, CNI_ADDRESS_SIZE);
	assert_int_equal(cni_address_parse("::", address), 0);
	assert_memory_equal(address, cni_address_any_ipv6, CNI_ADDRESS_SIZE);
}
