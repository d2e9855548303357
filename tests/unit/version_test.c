/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* version_test.c - which of two versions is older. */
#include "cni_testing.h"

#include "lib/text.h"

TEST(test_order, "order")
{
	static const char *const versions[] = {"0.1~rc1", "0.1~rc2", "0.1",  "0.1.1",
					       "0.2~rc1", "0.2.0",   "0.10", "5.15.0-91-generic"};
	const int count = sizeof(versions) / sizeof(versions[0]);

	for (int i = 0; i < count; i++)
		for (int j = 0; j < count; j++)
			assert_int_equal(version_is_older(versions[i], versions[j]), i < j);
	/* Missing parts are 0, and leading zeros mean nothing. */
	assert_false(version_is_older("0.2", "0.2.0"));
	assert_false(version_is_older("01.0.0", "1"));
	assert_false(version_is_older("1", "01.0.0"));
	assert_false(version_is_older("0.2.0", "0.2"));
	assert_false(version_is_older("5.15.0-91-generic", "5.15"));
}
