/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* cni_testing.h - cmocka with rows: each row of a table is a test with its own name. */
#pragma once

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "lib/error.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MAX_TESTS 512

static struct {
	struct CMUnitTest list[MAX_TESTS];
	size_t count;
	CMFixtureFunction set_up, tear_down;
} tests;

static inline void test_add(const char *name, CMUnitTestFunction function, const void *row)
{
	if (tests.count == MAX_TESTS)
		abort();
	tests.list[tests.count++] = (struct CMUnitTest){
		.name = name,
		.test_func = function,
		.setup_func = tests.set_up,
		.teardown_func = tests.tear_down,
		.initial_state = (void *)row,
	};
}

/* Every row begins with its name. */
static inline void test_add_rows(const void *rows, size_t size, size_t count,
				 CMUnitTestFunction function)
{
	for (size_t i = 0; i < count; i++) {
		const char *const *row = (const void *)((const char *)rows + i * size);

		test_add(*row, function, row);
	}
}

/* Adds tests before main(), in the order in which they stand in the file. */
#define ADD_TESTS(name) __attribute__((constructor)) static void name(void)

/* What a test is called, and the test; the same for each row of a table, `row` in it. */
#define TEST(function, says) \
	static void function(void **state); \
	ADD_TESTS(add_##function) \
	{ \
		test_add(says, function, NULL); \
	} \
	static void function(void **state)
#define ROWS(rows, function) \
	static void function(const __typeof__((rows)[0]) *row); \
	static void function##_of(void **state) \
	{ \
		function(*state); \
	} \
	ADD_TESTS(add_##function) \
	{ \
		test_add_rows(rows, sizeof((rows)[0]), COUNT(rows), function##_of); \
	} \
	static void function(const __typeof__((rows)[0]) *row)

/* The tests that stand behind it have it. */
#define FIXTURE(set_up_, tear_down_) \
	ADD_TESTS(have_##set_up_) \
	{ \
		tests.set_up = set_up_; \
		tests.tear_down = tear_down_; \
	}

int main(void)
{
	return _cmocka_run_group_tests(program_invocation_short_name, tests.list, tests.count, NULL,
				       NULL);
}

/* Of the test that runs; assert_error() empties it. */
static struct cni_error fault __attribute__((unused));

/* Code 0: no error. The message must contain the fragment. */
static inline void assert_error(int code, const char *fragment)
{
	if (fault.code != code)
		print_error("code %d, not %d: %s\n", fault.code, code,
			    fault.code ? cni_error_message(&fault) : "no error");
	else if (code && fragment && !strstr(cni_error_message(&fault), fragment))
		print_error("no \"%s\" in: %s\n", fragment, cni_error_message(&fault));
	assert_int_equal(fault.code, code);
	if (code && fragment)
		assert_non_null(strstr(cni_error_message(&fault), fragment));
	cni_error_release(&fault);
}

/* JSON that the test itself wrote: ' stands for ". */
static inline char *unquoted(const char *text)
{
	char *copy = strdup(text);

	assert_non_null(copy);
	for (char *next = copy; (next = strchr(next, '\'')) != NULL;)
		*next = '"';
	return copy;
}

static inline json_t *json_of(const char *text)
{
	char *copy = unquoted(text);
	json_t *json = json_loads(copy, JSON_DECODE_ANY, NULL);

	if (!json)
		print_error("the test's own JSON is broken: %s\n", text);
	assert_non_null(json);
	free(copy);
	return json;
}

static inline void assert_json_text(const json_t *json, const char *expected)
{
	char *text = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY), *copy = unquoted(expected);

	assert_non_null(text);
	assert_string_equal(text, copy);
	free(copy);
	free(text);
}
