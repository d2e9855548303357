/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* port_cover_test.c - a few ranges that hold many ports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "net/port_cover.h"

static struct port_range ranges[PORT_COVER_RANGES];

static void expect_range(size_t number, uint16_t first, uint16_t last)
{
	assert_int_equal(ranges[number].first, first);
	assert_int_equal(ranges[number].last, last);
}

static void test_none(void **state)
{
	uint16_t ports[1];

	assert_int_equal(port_cover(ports, 0, ranges), 0);
}

static void test_neighbours_are_one_range(void **state)
{
	uint16_t ports[] = {8081, 443, 8080, 443, 65535, 8082, 1};

	assert_int_equal(port_cover(ports, 7, ranges), 4);
	expect_range(0, 1, 1);
	expect_range(1, 443, 443);
	expect_range(2, 8080, 8082);
	expect_range(3, 65535, 65535);
}

static void test_every_port(void **state)
{
	uint16_t *ports = malloc(65535 * sizeof(*ports));

	assert_non_null(ports);
	for (uint32_t i = 0; i < 65535; i++)
		ports[i] = (uint16_t)(65535 - i);
	assert_int_equal(port_cover(ports, 65535, ranges), 1);
	expect_range(0, 1, 65535);
	free(ports);
}

/* Two ranges less than there are ports: the two smallest gaps are closed. */
static void test_smallest_gaps_are_closed(void **state)
{
	uint16_t ports[PORT_COVER_RANGES + 2];

	for (uint16_t i = 0; i < PORT_COVER_RANGES + 2; i++)
		ports[i] = (uint16_t)(1000 + 100 * i);
	ports[4] += 30;                     /* 1430: 70 to 1500 */
	ports[PORT_COVER_RANGES + 1] -= 60; /* 2640: 40 from 2600 */
	assert_int_equal(port_cover(ports, PORT_COVER_RANGES + 2, ranges), PORT_COVER_RANGES);
	expect_range(3, 1300, 1300);
	expect_range(4, 1430, 1500);
	expect_range(5, 1600, 1600);
	expect_range(PORT_COVER_RANGES - 1, 2600, 2640);
}

static void test_full_is_not_too_many(void **state)
{
	uint16_t ports[PORT_COVER_RANGES];

	for (uint16_t i = 0; i < PORT_COVER_RANGES; i++)
		ports[i] = (uint16_t)(2 * i + 1);
	assert_int_equal(port_cover(ports, PORT_COVER_RANGES, ranges), PORT_COVER_RANGES);
	for (uint16_t i = 0; i < PORT_COVER_RANGES; i++)
		expect_range(i, ports[i], ports[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_neighbours_are_one_range),
		cmocka_unit_test(test_every_port),
		cmocka_unit_test(test_smallest_gaps_are_closed),
		cmocka_unit_test(test_full_is_not_too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
