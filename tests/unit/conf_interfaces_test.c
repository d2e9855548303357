/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conf_interfaces_test.c - uplinks and excludeInterfaces.
 */
#include "cni_testing.h"

#include <stdio.h>

#include "lib/cleanup.h"
#include "lib/text.h"
#include "conf/option_table.h"

struct row {
	const char *name;
	const char *list; /* of uplinks, and again of excludeInterfaces */
	int code;
	const char *expected; /* what was read, separated by blanks; or a part of the error */
};

#define NAME_OF_15 "abcdefghijklmno"
#define GLOB_OF_64 "[abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXY]*"

#define BY_DEFAULT "kube-ipvs0 nodelocaldns "

static const struct row rows[] = {
	{"null", "null", 0, ""},
	{"an empty list", "[]", 0, ""},
	{"a name", "['eth0']", 0, "eth0 "},
	{"names and globs stay in order", "['wg?','eth*','bond[01]','eth0']", 0,
	 "wg? eth* bond[01] eth0 "},
	{"a name of 15 bytes", "[\"" NAME_OF_15 "\"]", 0, NAME_OF_15 " "},
	{"a name of 16 bytes", "[\"" NAME_OF_15 "p\"]", 7,
	 "[0] is \"" NAME_OF_15 "p\", which is longer than 15 bytes: give the name"},
	{"a glob may be longer than a name", "[\"" NAME_OF_15 "[pq]\"]", 0, NAME_OF_15 "[pq] "},
	{"a question mark makes a glob", "[\"" NAME_OF_15 "?\"]", 0, NAME_OF_15 "? "},
	{"a backslash makes a glob", "[\"" NAME_OF_15 "\\\\*\"]", 0, NAME_OF_15 "\\* "},
	{"a glob of 64 bytes", "[\"" GLOB_OF_64 "\"]", 0, GLOB_OF_64 " "},
	{"a glob of 65 bytes", "[\"" GLOB_OF_64 "*\"]", 7, "which is longer than 64 bytes"},
	{"a class in a glob", "['eth[[:digit:]]']", 0, "eth[[:digit:]] "},
	{"a name beyond ASCII", "['\\u00fcplink']", 0, "\xc3\xbcplink "},
	{"an empty name", "['eth0','']", 7, "[1] is \"\", which is empty"},
	{"a name with a slash", "['eth0/1']", 7, "[0] is \"eth0/1\", which has a slash"},
	{"a glob with a slash", "['/sys/*']", 7, "has a slash"},
	{"a name with a blank", "['eth0 eth1']", 7, "has a blank"},
	{"a name with a newline", "['eth0\\n']", 7, "has a blank"},
	{"a name with an escape character", "['\\u001b[2J']", 7, "control character"},
	{"a name with a colon", "['eth0:1']", 7, "has a colon"},
	{"a dot", "['.']", 7, "is a directory"},
	{"two dots", "['..']", 7, "is a directory"},
};

static void assert_names(const char *names, const char *expected)
{
	char text[512] = "";

	for_each_name (name, names) {
		size_t length = strlen(text);

		snprintf(text + length, sizeof(text) - length, "%s ", name);
	}
	assert_string_equal(text, expected);
}

static void read_key(const struct row *row, const char *key)
{
	cleanup_json json_t *config = json_pack("{s:o}", key, json_of(row->list));
	char message[256] = "";
	struct conf conf = {0};

	assert_int_equal(conf_parse_options(&conf, config, &fault), row->code ? -1 : 0);
	if (!row->code) {
		bool is_uplinks = !strcmp(key, "uplinks");
		const char *excluded =
			is_uplinks || !strcmp(row->list, "null") ? BY_DEFAULT : row->expected;

		assert_names(conf.uplinks, is_uplinks ? row->expected : "");
		assert_names(conf.excluded_interfaces, excluded);
	}
	/* The message names the key too. */
	snprintf(message, sizeof(message), "\"%s\"%s", key,
		 row->expected[0] == '[' ? row->expected : "");
	if (row->code)
		assert_non_null(strstr(cni_error_message(&fault), message));
	assert_error(row->code, row->expected);
	conf_release(&conf);
}

ROWS(rows, reads_names)
{
	read_key(row, "uplinks");
	read_key(row, "excludeInterfaces");
}

/* One that is empty is a list too: nothing is excluded then. */
TEST(excludes_by_default, "what is excluded by default")
{
	cleanup_json json_t *without = json_pack("{}");
	cleanup_json json_t *empty = json_pack("{s:[]}", "excludeInterfaces");
	cleanup_json json_t *other = json_pack("{s:[s]}", "EXCLUDEINTERFACES", "vip*");
	const json_t *configs[] = {without, empty, other};
	const char *expected[] = {BY_DEFAULT, "", "vip* "};

	for (size_t i = 0; i < 3; i++) {
		struct conf conf = {0};

		assert_int_equal(conf_parse_options(&conf, configs[i], &fault), 0);
		assert_names(conf.excluded_interfaces, expected[i]);
		conf_release(&conf);
	}
}

static json_t *config_of(size_t count)
{
	json_t *array = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(array, json_string("eth*"));
	return json_pack("{s:o}", "uplinks", array);
}

TEST(takes_64, "64 names")
{
	cleanup_json json_t *config = config_of(64);
	struct conf conf = {0};
	int count = 0;

	assert_int_equal(conf_parse_options(&conf, config, &fault), 0);
	for_each_name (name, conf.uplinks)
		count++;
	assert_int_equal(count, 64);
	conf_release(&conf);
}

TEST(refuses_more, "more than 64 names")
{
	static const size_t counts[] = {65, 1000000};

	for (size_t i = 0; i < COUNT(counts); i++) {
		cleanup_json json_t *config = config_of(counts[i]);
		struct conf conf = {0};

		assert_int_equal(conf_parse_options(&conf, config, &fault), -1);
		assert_error(7, "\"uplinks\" has ");
		conf_release(&conf);
	}
}

static const struct {
	const char *name;
	const char *list;
	const char *interface;
	bool named;
} match_rows[] = {
	{"no list names nothing", "[]", "eth0", false},
	{"a name is itself", "['eth0']", "eth0", true},
	{"a name is no prefix", "['eth']", "eth0", false},
	{"a name is no part", "['th0']", "eth0", false},
	{"names are told by case", "['ETH0']", "eth0", false},
	{"a star", "['eth*']", "eth0.100", true},
	{"a star is nothing too", "['eth*']", "eth", true},
	{"a star alone", "['*']", "wg0", true},
	{"a star is no dot file's", "['*']", ".x", true},
	{"a question mark", "['eth?']", "eth10", false},
	{"a bracket", "['eth[0-3]']", "eth3", true},
	{"not in a bracket", "['eth[!0-3]']", "eth3", false},
	{"an escaped star", "['eth\\\\*']", "eth0", false},
	{"the second of two", "['wg0','eth0']", "eth0", true},
	{"none of two", "['wg0','eth1']", "eth0", false},
};

ROWS(match_rows, matches)
{
	cleanup_json json_t *config = json_pack("{s:o}", "uplinks", json_of(row->list));
	struct conf conf = {0};

	assert_int_equal(conf_parse_options(&conf, config, &fault), 0);
	assert_int_equal(conf_names_interface(conf.uplinks, row->interface), row->named);
	conf_release(&conf);
}
