/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* port_ranges_test.c - which ports are left for masqueraded flows. */
#include "cni_testing.h"

#include <stdio.h>

#include "net/host_settings.h"

/* "1024-32767 61000-65535" */
static const char *choose(uint16_t first, uint16_t last, const char *reserved, bool enough)
{
	static char text[MASQUERADE_RANGES * 16];
	struct port_range ranges[MASQUERADE_RANGES];
	size_t length = 0;

	assert_int_equal(port_ranges_choose((struct port_range){first, last}, reserved, ranges),
			 enough);
	text[0] = '\0';
	for (size_t i = 0; i < MASQUERADE_RANGES && ranges[i].last; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%u-%u",
					   i ? " " : "", ranges[i].first, ranges[i].last);
	return text;
}

TEST(test_ephemeral_range, "ephemeral range")
{
	assert_string_equal(choose(32768, 60999, "", true), "1024-32767 61000-65535");
	assert_string_equal(choose(1024, 40000, "", true), "40001-65535");
	assert_string_equal(choose(40000, 65535, "", true), "1024-39999");
	assert_string_equal(choose(1, 1023, "", true), "1024-65535");
}

TEST(test_reserved_ports, "reserved ports")
{
	assert_string_equal(choose(32768, 60999, "1024,2000-2009,65535\n", true),
			    "1025-1999 2010-32767 61000-65534");
	assert_string_equal(choose(32768, 60999,
				   "99999-100000,70000,4000-99999999999999999999,4000-65535", true),
			    "1024-3999");
	assert_string_equal(choose(32768, 60999, "x,,-,9-3,5000", true),
			    "1024-4999 5001-32767 61000-65535");
}

/* Sixteen fit; the smaller ones go. */
TEST(test_more_ranges_than_fit, "more ranges than fit")
{
	char reserved[256] = "";
	const char *found;

	for (int port = 2000; port < 2040; port += 2)
		snprintf(reserved + strlen(reserved), sizeof(reserved) - strlen(reserved), "%d,",
			 port);
	found = choose(32768, 60999, reserved, true);
	assert_memory_equal(found, "1024-1999 ", 10);
	assert_non_null(strstr(found, " 2039-32767 61000-65535"));
}

TEST(test_hardly_any_left, "hardly any left")
{
	assert_string_equal(choose(1024, 65535, "", false), "1024-65535");
	assert_string_equal(choose(1024, 65000, "3000", false), "1024-2999 3001-65535");
	assert_string_equal(choose(32768, 60999, "1-65535", false), "1024-65535");
}
