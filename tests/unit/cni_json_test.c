/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cni_json_test.c - JSON from strangers.
 */
#include "cni_testing.h"

#include <stdio.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/io.h"
#include "lib/json.h"

static const struct {
	const char *name;
	const char *text;
	int code;
	const char *fragment;
} parse_rows[] = {
	{"an object", "{\"a\": 1}", 0, NULL},
	{"blanks around", " \n\t {} \r\n ", 0, NULL},
	{"a 64-bit integer", "{\"a\": 9223372036854775807}", 0, NULL},
	{"a number in an unknown key is no matter", "{\"a\": 80.5}", 0, NULL},
	{"empty", "", 6, "is empty"},
	{"only blanks", " \n\t\r", 6, "is empty"},
	{"text after the object", "{} x", 6, "line 1"},
	{"a second object", "{}{}", 6, "line 1"},
	{"an array", "[]", 6, "must be a JSON object, found an array"},
	{"a byte-order mark", "\xef\xbb\xbf{}", 6, "not valid JSON"},
	{"null", "null", 6, "found null"},
	{"a string", "\"x\"", 6, "found the string \"x\""},
	{"not JSON", "hello", 6, "not valid JSON"},
	{"an object that ends early", "{\"a\": ", 6, "not valid JSON"},
	{"a comma at the end", "{\"a\": 1,}", 6, "not valid JSON"},
	{"single quotes", "{'a': 1}", 6, "not valid JSON"},
	{"a comment", "{} // x", 6, "not valid JSON"},
	{"a 20-digit integer", "{\"a\": 12345678901234567890}", 6, "too big"},
	{"a lone surrogate", "{\"a\": \"\\ud800\"}", 6, "not valid JSON"},
	{"bytes that are not UTF-8", "{\"a\": \"\xff\xfe\"}", 6, "not valid JSON"},
	{"a NUL in a string", "{\"a\": \"x\\u0000y\"}", 6, "not valid JSON"},
	{"a NUL in a key", "{\"a\\u0000b\": 1}", 6, "not valid JSON"},
	{"a real number out of range", "{\"a\": 1e999}", 6, "not valid JSON"},
	{"NaN", "{\"a\": NaN}", 6, "not valid JSON"},
	{"a leading zero", "{\"a\": 080}", 6, "not valid JSON"},
};

ROWS(parse_rows, parses_or_says_why_not)
{
	json_t *json = cni_json_parse_object(row->text, strlen(row->text), "the input", &fault);

	assert_int_equal(json != NULL, row->code == 0);
	json_decref(json);
	if (row->code)
		assert_int_equal(strncmp(cni_error_message(&fault), "the input ", 10), 0);
	assert_error(row->code, row->fragment);
}

TEST(a_nul_byte_outside_a_string_is_refused, "a NUL byte outside a string is 6")
{
	assert_null(cni_json_parse("{}\0{}", 5, "the input", &fault));
	assert_error(6, "not valid JSON");
	assert_null(cni_json_parse("\0", 1, "the input", &fault));
	assert_error(6, "not valid JSON");
}

TEST(deep_nesting_is_refused, "nesting 100,000 deep is 6")
{
	static const char *const openings[] = {"[", "{\"a\":"};
	const size_t depth = 100000;

	for (size_t i = 0; i < COUNT(openings); i++) {
		size_t length = strlen(openings[i]);
		char *text = malloc(depth * length + 1);

		assert_non_null(text);
		for (size_t j = 0; j < depth; j++)
			memcpy(text + j * length, openings[i], length);
		assert_null(cni_json_parse(text, depth * length, "the input", &fault));
		assert_error(6, "depth");
		free(text);
	}
}

TEST(a_megabyte_of_garbage_is_refused, "a megabyte of garbage is 6")
{
	const size_t length = 1 << 20;
	char *text = malloc(length);
	uint32_t random = 1;

	assert_non_null(text);
	for (int round = 0; round < 8; round++) {
		for (size_t i = 0; i < length; i++) {
			random = random * 1664525 + 1013904223;
			text[i] = (char)(random >> 24);
		}
		text[0] = round & 1 ? '{' : '['; /* past the first byte, too */
		assert_null(cni_json_parse(text, length, "the input", &fault));
		assert_true(strlen(cni_error_message(&fault)) < 1000);
		assert_error(6, "not valid JSON");
	}
	free(text);
}

static const struct {
	const char *name;
	const char *object;
	const char *expected; /* of key "hostPort"; NULL: missing */
} get_rows[] = {
	{"the same case", "{\"hostPort\":1}", "1"},
	{"another case", "{\"HOSTPORT\":1}", "1"},
	{"of two the later wins", "{\"hostPort\":1,\"HostPort\":2}", "2"},
	{"of two the later wins, other order", "{\"HostPort\":2,\"hostPort\":1}", "1"},
	{"the same key twice", "{\"hostPort\":1,\"hostPort\":2}", "2"},
	{"missing", "{\"port\":1}", NULL},
	{"null is missing", "{\"hostPort\":null}", NULL},
	{"a longer key is another", "{\"hostPorts\":1,\"hostPor\":2}", NULL},
	{"no object at all", "[1]", NULL},
};

ROWS(get_rows, finds_the_key)
{
	cleanup_json json_t *object = json_of(row->object);
	const json_t *value = cni_json_get(object, "hostPort");

	assert_int_equal(value != NULL, row->expected != NULL);
	if (value)
		assert_json_text(value, row->expected);
}

enum getter {
	STRING,
	INTEGER,
	BOOLEAN,
	OBJECT,
	ARRAY,
};

static int get_any(enum getter getter, const json_t *object)
{
	const char *string = NULL;
	json_int_t integer;
	bool boolean;
	json_t *value = NULL;

	switch (getter) {
	case STRING:
		return cni_json_get_string(object, "k", &string, &fault);
	case INTEGER:
		return cni_json_get_integer(object, "k", &integer, &fault);
	case BOOLEAN:
		return cni_json_get_boolean(object, "k", &boolean, &fault);
	case OBJECT:
		return cni_json_get_object(object, "k", &value, &fault);
	default:
		return cni_json_get_array(object, "k", &value, &fault);
	}
}

static const struct {
	const char *name;
	enum getter getter;
	const char *object;
	const char *message; /* NULL: accepted */
} type_rows[] = {
	{"a string is a string", STRING, "{\"k\":\"v\"}", NULL},
	{"a string may be missing", STRING, "{}", NULL},
	{"a string may be null", STRING, "{\"k\":null}", NULL},
	{"a number is no string", STRING, "{\"k\":6}",
	 "\"k\" must be a string, found the number 6"},
	{"an integer is an integer", INTEGER, "{\"k\":-1}", NULL},
	{"an integer may be null", INTEGER, "{\"k\":null}", NULL},
	{"\"80\" is no integer", INTEGER, "{\"k\":\"80\"}",
	 "\"k\" must be an integer, found the string \"80\""},
	{"80.0 is no integer", INTEGER, "{\"k\":80.0}",
	 "\"k\" must be an integer, found the number 80.0"},
	{"80.5 is no integer", INTEGER, "{\"k\":80.5}",
	 "\"k\" must be an integer, found the number 80.5"},
	{"8e3 is no integer", INTEGER, "{\"k\":8e3}",
	 "\"k\" must be an integer, found the number 8000.0"},
	{"1e300 is no integer", INTEGER, "{\"k\":1e300}",
	 "\"k\" must be an integer, found the number 1e300"},
	{"true is no integer", INTEGER, "{\"k\":true}", "\"k\" must be an integer, found true"},
	{"true is a boolean", BOOLEAN, "{\"k\":true}", NULL},
	{"false is a boolean", BOOLEAN, "{\"k\":false}", NULL},
	{"\"false\" is no boolean", BOOLEAN, "{\"k\":\"false\"}",
	 "\"k\" must be true or false, found the string \"false\""},
	{"0 is no boolean", BOOLEAN, "{\"k\":0}",
	 "\"k\" must be true or false, found the number 0"},
	{"an object is an object", OBJECT, "{\"k\":{}}", NULL},
	{"an array is no object", OBJECT, "{\"k\":[]}", "\"k\" must be an object, found an array"},
	{"an array is an array", ARRAY, "{\"k\":[]}", NULL},
	{"an object is no array", ARRAY, "{\"k\":{}}", "\"k\" must be an array, found an object"},
	{"false is no array", ARRAY, "{\"k\":false}", "\"k\" must be an array, found false"},
	{"a long string is cut in messages", INTEGER,
	 "{\"k\":\"12345678901234567890123456789012345678901234567890\"}",
	 "\"k\" must be an integer, found the string "
	 "\"1234567890123456789012345678901234567890...\""},
	{"a long string is cut between characters", INTEGER,
	 "{\"k\":\"123456789012345678901234567890123456789\xc3\xa9xyz\"}",
	 "\"k\" must be an integer, found the string "
	 "\"123456789012345678901234567890123456789...\""},
};

ROWS(type_rows, getter_knows_its_type)
{
	cleanup_json json_t *object = json_of(row->object);

	assert_int_equal(get_any(row->getter, object), row->message ? -1 : 0);
	if (row->message)
		assert_string_equal(cni_error_message(&fault), row->message);
	assert_error(row->message ? 6 : 0, NULL);
}

TEST(defaults_stay_where_the_key_is_missing, "defaults stay where the key is missing or null")
{
	cleanup_json json_t *object = json_of("{\"a\":null,\"K\":\"v\"}");
	const char *string = "default";
	json_int_t integer = 7;
	bool boolean = true;

	assert_int_equal(cni_json_get_string(object, "a", &string, &fault), 0);
	assert_string_equal(string, "default");
	assert_int_equal(cni_json_get_integer(object, "b", &integer, &fault), 0);
	assert_int_equal(integer, 7);
	assert_int_equal(cni_json_get_boolean(object, "a", &boolean, &fault), 0);
	assert_true(boolean);
	assert_int_equal(cni_json_get_string(object, "k", &string, &fault), 0);
	assert_string_equal(string, "v");
}

static const struct {
	const char *name;
	const char *before;
	const char *after;
} set_rows[] = {
	{"set keeps the key's place", "{\"a\":1,\"key\":2,\"b\":3}", "{\"a\":1,\"key\":9,\"b\":3}"},
	{"set appends a new key", "{\"a\":1}", "{\"a\":1,\"key\":9}"},
	{"set removes other spellings", "{\"KEY\":1,\"key\":2,\"Key\":3}", "{\"key\":9}"},
	{"set replaces another spelling", "{\"KEY\":1,\"b\":3}", "{\"b\":3,\"key\":9}"},
};

ROWS(set_rows, sets_one_spelling)
{
	cleanup_json json_t *object = json_of(row->before);

	cni_json_set_new(object, "key", json_integer(9));
	assert_json_text(object, row->after);
	cni_json_delete(object, "KEY");
	assert_null(cni_json_get(object, "key"));
}

/* The reading end of a pipe that holds the text; the text fits into it. */
static int pipe_of(const char *text, size_t length)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], text, length), (ssize_t)length);
	close(ends[1]);
	return ends[0];
}

TEST(input_is_read_to_its_end, "input is read to its end")
{
	static const char text[10000] = {[0] = 'a', [9999] = 'z'};
	cleanup_close int fd = pipe_of(text, sizeof(text));
	cleanup_free char *read_text = NULL;
	size_t length;

	read_text = cni_read_all(fd, sizeof(text), "stdin", &length, &fault);
	assert_non_null(read_text);
	assert_int_equal(length, sizeof(text));
	assert_memory_equal(read_text, text, sizeof(text));
	assert_int_equal(read_text[length], '\0');
}

TEST(input_above_the_limit_is_refused, "input above the limit is 5")
{
	cleanup_close int fd = pipe_of("12345", 5);
	size_t length;

	assert_null(cni_read_all(fd, 4, "stdin", &length, &fault));
	assert_error(5, "stdin is longer than 4 bytes");
}

TEST(input_that_fails_is_an_io_error, "input that fails is 5")
{
	size_t length;

	assert_null(cni_read_all(-1, 4, "stdin", &length, &fault));
	assert_error(5, "cannot read stdin: Bad file descriptor");
}

TEST(empty_input_is_an_empty_text, "empty input is an empty text")
{
	cleanup_close int fd = pipe_of("", 0);
	cleanup_free char *text = NULL;
	size_t length = 99;

	text = cni_read_all(fd, 4, "stdin", &length, &fault);
	assert_non_null(text);
	assert_int_equal(length, 0);
	assert_string_equal(text, "");
}
