/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cni_testing.h - cmocka with rows: each row of a table is a test with its own name.
 *
 * [sN] in a name is the number of the protocol statement that the row proves.
 */
#pragma once

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

struct test_list {
	struct CMUnitTest tests[MAX_TESTS];
	size_t count;
};

static inline void test_list_add(struct test_list *list, const char *name,
				 CMUnitTestFunction function, const void *row)
{
	if (list->count == MAX_TESTS)
		abort();
	list->tests[list->count++] = (struct CMUnitTest){
		.name = name,
		.test_func = function,
		.initial_state = (void *)row,
	};
}

/* Every row begins with its name. */
static inline void test_list_add_rows(struct test_list *list, const void *rows, size_t size,
				      size_t count, CMUnitTestFunction function)
{
	for (size_t i = 0; i < count; i++) {
		const char *const *row = (const void *)((const char *)rows + i * size);

		test_list_add(list, *row, function, row);
	}
}

#define ADD_ROWS(list, rows, function) \
	test_list_add_rows(list, rows, sizeof((rows)[0]), COUNT(rows), function)
#define ADD_TEST(list, name, function) test_list_add(list, name, function, NULL)

static inline int test_list_run(struct test_list *list, const char *group)
{
	return _cmocka_run_group_tests(group, list->tests, list->count, NULL, NULL);
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
