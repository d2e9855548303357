/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * json.c - JSON from strangers: parsing with clear errors, and typed look-ups.
 */
#include "cni/json.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/auxv.h>

#define QUOTED_BYTES 40 /* of a string that is quoted in a message */

void cni_json_begin(void)
{
	const char *random_bytes = (const char *)getauxval(AT_RANDOM); /* 16, at any address */
	size_t seed = 0; /* jansson shall find some itself */

	if (random_bytes)
		memcpy(&seed, random_bytes + 16 - sizeof(seed), sizeof(seed));
	json_object_seed(seed);
}

json_t *cni_json_parse(const char *text, size_t length, const char *what, struct cni_error *err)
{
	json_error_t error;
	json_t *json;
	size_t blank = 0;

	while (blank < length && strchr(" \t\r\n", text[blank]) && text[blank])
		blank++;
	if (blank == length) {
		cni_error_set(err, CNI_ERROR_DECODE, "%s is empty, JSON was expected", what);
		return NULL;
	}
	json = json_loadb(text, length, JSON_DECODE_ANY, &error);
	if (!json)
		cni_error_set(err, CNI_ERROR_DECODE, "%s is not valid JSON: line %d, column %d: %s",
			      what, error.line, error.column, error.text);
	return json;
}

json_t *cni_json_parse_object(const char *text, size_t length, const char *what,
			      struct cni_error *err)
{
	char found[CNI_JSON_DESCRIPTION_SIZE];
	json_t *json = cni_json_parse(text, length, what, err);

	if (json && !json_is_object(json)) {
		cni_error_set(err, CNI_ERROR_DECODE, "%s must be a JSON object, found %s", what,
			      cni_json_describe(json, found));
		json_decref(json);
		return NULL;
	}
	return json;
}

json_t *cni_json_get(const json_t *object, const char *key)
{
	json_t *constless = (json_t *)object; /* the iterators of jansson take no const */
	json_t *found = NULL;
	const char *candidate;
	json_t *value;

	json_object_foreach (constless, candidate, value) {
		if (!strcasecmp(candidate, key))
			found = value;
	}
	return json_is_null(found) ? NULL : found;
}

static int json_refuse(const char *key, const char *wanted, const json_t *found,
		       struct cni_error *err)
{
	char description[CNI_JSON_DESCRIPTION_SIZE];

	return cni_error_set(err, CNI_ERROR_DECODE, "\"%s\" must be %s, found %s", key, wanted,
			     cni_json_describe(found, description));
}

int cni_json_get_string(const json_t *object, const char *key, const char **value,
			struct cni_error *err)
{
	const json_t *found = cni_json_get(object, key);

	if (!found)
		return 0;
	if (!json_is_string(found))
		return json_refuse(key, "a string", found, err);
	*value = json_string_value(found);
	return 0;
}

int cni_json_get_integer(const json_t *object, const char *key, json_int_t *value,
			 struct cni_error *err)
{
	const json_t *found = cni_json_get(object, key);

	if (!found)
		return 0;
	if (!json_is_integer(found))
		return json_refuse(key, "an integer", found, err);
	*value = json_integer_value(found);
	return 0;
}

int cni_json_get_boolean(const json_t *object, const char *key, bool *value, struct cni_error *err)
{
	const json_t *found = cni_json_get(object, key);

	if (!found)
		return 0;
	if (!json_is_boolean(found))
		return json_refuse(key, "true or false", found, err);
	*value = json_is_true(found);
	return 0;
}

int cni_json_get_object(const json_t *object, const char *key, json_t **value,
			struct cni_error *err)
{
	json_t *found = cni_json_get(object, key);

	if (!found)
		return 0;
	if (!json_is_object(found))
		return json_refuse(key, "an object", found, err);
	*value = found;
	return 0;
}

int cni_json_get_array(const json_t *object, const char *key, json_t **value, struct cni_error *err)
{
	json_t *found = cni_json_get(object, key);

	if (!found)
		return 0;
	if (!json_is_array(found))
		return json_refuse(key, "an array", found, err);
	*value = found;
	return 0;
}

int cni_json_check_element(const json_t *element, const char *array, size_t index,
			   struct cni_error *err)
{
	char found[CNI_JSON_DESCRIPTION_SIZE];

	if (json_is_object(element))
		return 0;
	return cni_error_set(err, CNI_ERROR_DECODE, "%s[%zu] must be an object, found %s", array,
			     index, cni_json_describe(element, found));
}

int cni_json_get_string_element(const json_t *element, const char *array, size_t index,
				const char **value, struct cni_error *err)
{
	char found[CNI_JSON_DESCRIPTION_SIZE];

	*value = json_string_value(element);
	if (*value)
		return 0;
	return cni_error_set(err, CNI_ERROR_DECODE, "\"%s\"[%zu] must be a string, found %s", array,
			     index, cni_json_describe(element, found));
}

/* `spared`: a spelling that stays, or NULL. */
static void delete_spellings(json_t *object, const char *key, const char *spared)
{
	const char *candidate;
	json_t *value;
	void *next;

	json_object_foreach_safe (object, next, candidate, value) {
		if (!strcasecmp(candidate, key) && !(spared && !strcmp(candidate, spared)))
			json_object_del(object, candidate);
	}
}

void cni_json_delete(json_t *object, const char *key)
{
	delete_spellings(object, key, NULL);
}

int cni_json_set_new(json_t *object, const char *key, json_t *value, struct cni_error *err)
{
	delete_spellings(object, key, key);
	if (json_object_set_new(object, key, value))
		return cni_error_no_memory(err);
	return 0;
}

/* Cuts between characters, so that what is shown remains UTF-8. */
static int quoted_length(const char *text)
{
	size_t length = strlen(text);

	if (length <= QUOTED_BYTES)
		return (int)length;
	length = QUOTED_BYTES;
	while (length && ((unsigned char)text[length] & 0xc0) == 0x80)
		length--;
	return (int)length;
}

static void describe_string(const char *text, char buffer[CNI_JSON_DESCRIPTION_SIZE])
{
	int shown = quoted_length(text);

	snprintf(buffer, CNI_JSON_DESCRIPTION_SIZE, "the string \"%.*s%s\"", shown, text,
		 text[shown] ? "..." : "");
}

/* 80.0 is not the integer 80: show why it was refused. */
static void describe_real(double number, char buffer[CNI_JSON_DESCRIPTION_SIZE])
{
	char digits[32];

	snprintf(digits, sizeof(digits), "%.15g", number);
	snprintf(buffer, CNI_JSON_DESCRIPTION_SIZE, "the number %s%s", digits,
		 strpbrk(digits, ".e") ? "" : ".0");
}

const char *cni_json_describe(const json_t *value, char buffer[CNI_JSON_DESCRIPTION_SIZE])
{
	const char *text = "nothing";

	if (json_is_string(value)) {
		describe_string(json_string_value(value), buffer);
		return buffer;
	}
	if (json_is_integer(value)) {
		snprintf(buffer, CNI_JSON_DESCRIPTION_SIZE, "the number %" JSON_INTEGER_FORMAT,
			 json_integer_value(value));
		return buffer;
	}
	if (json_is_real(value)) {
		describe_real(json_real_value(value), buffer);
		return buffer;
	}
	if (json_is_object(value))
		text = "an object";
	else if (json_is_array(value))
		text = "an array";
	else if (json_is_boolean(value))
		text = json_is_true(value) ? "true" : "false";
	else if (json_is_null(value))
		text = "null";
	snprintf(buffer, CNI_JSON_DESCRIPTION_SIZE, "%s", text);
	return buffer;
}
