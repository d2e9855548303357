/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cni_version_test.c - versions: which are known, how they compare, what they allow.
 */
#include "cni_testing.h"

#include "cni/version.h"

static const struct {
	const char *name;
	enum cni_command command;
	const char *version;
	int code;
} check_rows[] = {
	{"ADD 0.1.0", CNI_ADD, "0.1.0", 0},
	{"ADD 0.2.0", CNI_ADD, "0.2.0", 0},
	{"ADD 0.3.0", CNI_ADD, "0.3.0", 0},
	{"ADD 0.3.1", CNI_ADD, "0.3.1", 0},
	{"ADD 0.4.0", CNI_ADD, "0.4.0", 0},
	{"ADD 1.0.0", CNI_ADD, "1.0.0", 0},
	{"ADD 1.1.0", CNI_ADD, "1.1.0", 0},
	{"ADD 1.0 is no exact match", CNI_ADD, "1.0", 1},
	{"ADD 0.9.9", CNI_ADD, "0.9.9", 1},
	{"ADD abc", CNI_ADD, "abc", 1},
	{"ADD 2.0.0", CNI_ADD, "2.0.0", 1},
	{"ADD 1.1.0 with a blank", CNI_ADD, "1.1.0 ", 1},
	{"DEL 2.0.0", CNI_DEL, "2.0.0", 1},
	{"DEL 0.1.0", CNI_DEL, "0.1.0", 0},
	{"CHECK 0.4.0", CNI_CHECK, "0.4.0", 0},
	{"CHECK 1.0.0", CNI_CHECK, "1.0.0", 0},
	{"CHECK 1.1.0", CNI_CHECK, "1.1.0", 0},
	{"CHECK 0.3.1", CNI_CHECK, "0.3.1", 1},
	{"CHECK 0.1.0", CNI_CHECK, "0.1.0", 1},
	{"CHECK 0.4.9", CNI_CHECK, "0.4.9", 1},
	{"CHECK 2.0.0", CNI_CHECK, "2.0.0", 1},
	{"CHECK abc", CNI_CHECK, "abc", 6},
	{"GC 1.1.0", CNI_GC, "1.1.0", 0},
	{"GC 1.0.0", CNI_GC, "1.0.0", 1},
	{"GC 1.1 is equal but no exact match", CNI_GC, "1.1", 1},
	{"GC 1.1.0.0", CNI_GC, "1.1.0.0", 6},
	{"GC x", CNI_GC, "x", 6},
	{"STATUS 1.1.0", CNI_STATUS, "1.1.0", 0},
	{"STATUS 1.0.0", CNI_STATUS, "1.0.0", 1},
	{"STATUS 1.2.0", CNI_STATUS, "1.2.0", 1},
	{"STATUS -1.1.0", CNI_STATUS, "-1.1.0", 6},
};

ROWS(check_rows, command_in_version)
{
	assert_int_equal(cni_version_check(row->command, row->version, &fault), row->code ? -1 : 0);
	assert_error(row->code, row->version);
}

TEST(refusal_names_both_sides, "the refusal of a version names both sides")
{
	assert_int_equal(cni_version_check(CNI_ADD, "2.0.0", &fault), -1);
	assert_string_equal(cni_error_details(&fault),
			    "config is \"2.0.0\", plugin supports [0.1.0, 0.2.0, 0.3.0, 0.3.1, "
			    "0.4.0, 1.0.0, 1.1.0]");
	assert_error(1, "0.3.1, 0.4.0");
}

struct text_row {
	const char *name;
	const char *version;
};

static const struct text_row valid_rows[] = {
	{"one part", "1"},
	{"two parts", "1.1"},
	{"three parts", "0.10.0"},
	{"leading zeros", "01.0.0"},
};

ROWS(valid_rows, is_valid)
{
	assert_int_equal(cni_version_validate(row->version, &fault), 0);
}

static const struct text_row invalid_rows[] = {
	{"empty is no version", ""}, {"four parts", "1.0.0.0"},
	{"a dot at the end", "1."},  {"two dots", "1..0"},
	{"a letter", "1.0.0a"},      {"a sign", "+1.0.0"},
	{"a blank", " 1.0.0"},       {"a number of 20 digits", "12345678901234567890.0.0"},
};

ROWS(invalid_rows, is_refused)
{
	assert_int_equal(cni_version_validate(row->version, &fault), -1);
	assert_error(6, row->version);
}

static const struct {
	const char *name;
	const char *version;
	enum cni_version_family family;
} family_rows[] = {
	{"family of 0.1.0", "0.1.0", CNI_FAMILY_0_1}, {"family of 0.2.0", "0.2.0", CNI_FAMILY_0_1},
	{"family of 0.3.0", "0.3.0", CNI_FAMILY_0_3}, {"family of 0.3.1", "0.3.1", CNI_FAMILY_0_3},
	{"family of 0.4.0", "0.4.0", CNI_FAMILY_0_3}, {"family of 1.0.0", "1.0.0", CNI_FAMILY_1_0},
	{"family of 1.1.0", "1.1.0", CNI_FAMILY_1_0},
};

ROWS(family_rows, belongs_to_family)
{
	assert_true(cni_version_is_supported(row->version));
	assert_int_equal(cni_version_family(row->version), row->family);
}
