/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cni_text_test.c - what is left of text that would drive a terminal.
 */
#include "cni_testing.h"

#include "lib/text.h"

static const struct {
	const char *name;
	const char *text;
	const char *kept;
	const char *expected;
} rows[] = {
	{"nothing", "", "", ""},
	{"plain text", "port 80 is taken", "", "port 80 is taken"},
	{"UTF-8 of two, three and four bytes", "\u00e4\u20ac\U0001f600", "",
	 "\u00e4\u20ac\U0001f600"},
	{"an escape sequence", "a\033[31mb", "", "a?[31mb"},
	{"bell, backspace, carriage return, DEL", "\a\b\r\177", "", "????"},
	{"a line feed and a tab, not kept", "a\nb\tc", "", "a?b?c"},
	{"a line feed and a tab, kept", "a\nb\tc\033", "\n\t", "a\nb\tc?"},
	{"CSI as UTF-8",
	 "a\xc2\x9b"
	 "31mb",
	 "", "a??31mb"},
	{"CSI as one byte",
	 "a\x9b"
	 "31mb",
	 "", "a?31mb"},
	{"the first character that is no control character", "\xc2\xa0", "", "\xc2\xa0"},
	{"right-to-left override", "a\u202eb", "", "a???b"},
	{"right-to-left isolate", "a\u2067b", "", "a???b"},
	{"line separator", "a\u2028b", "\n", "a???b"},
	{"a character cut short", "a\xe2\x82", "", "a??"},
	{"a character cut short by another", "\xe2\x82\xc3\xa4", "", "??\xc3\xa4"},
	{"an escape character in two bytes", "\xc0\x9b", "", "??"},
	{"an escape character in three bytes", "\xe0\x80\x9b", "", "???"},
	{"a surrogate", "\xed\xa0\x80", "", "???"},
	{"beyond Unicode", "\xf4\x90\x80\x80\xff", "", "?????"},
};

ROWS(rows, cleaned)
{
	char *text = strdup(row->text);

	assert_non_null(text);
	cni_printable(text, row->kept);
	assert_string_equal(text, row->expected);
	free(text);
}

#define DIGITS "4c01db0b339c0000000000000000000000000000000000000000000000000007"

static const struct {
	const char *name, *id, *digits;
} engine_ids[] = {
	{"containerd's", DIGITS, DIGITS},
	{"nerdctl's", "k8s-default-" DIGITS, DIGITS},
	{"a digit too many", "0" DIGITS, NULL},
	{"other letters", "g" DIGITS, NULL},
	{"a word", "web", NULL},
	{"nothing", "", NULL},
};

ROWS(engine_ids, engine_id)
{
	const char *digits = engine_id_digits(row->id);

	assert_int_equal(!digits, !row->digits);
	if (digits)
		assert_string_equal(digits, row->digits);
}
