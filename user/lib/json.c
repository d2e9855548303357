/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* json.c - JSON from untrusted sources: parsing with clear errors, and typed look-ups. */
#include "lib/json.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/auxv.h>

#define QUOTED_BYTES 40 /* of a string that is quoted in a message */

void cni_json_begin(void)
{
	const char *random_bytes = (const char *)getauxval(AT_RANDOM); /* 16, not aligned */
	size_t seed = 0; /* jansson then finds one itself */

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
	if (blank == length)
		return cni_error_null(err, CNI_ERROR_DECODE, "%s is empty, JSON was expected",
				      what);
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
	json_t *constless = (json_t *)object; /* jansson's iterators take no const */
	json_t *found = NULL;
	const char *candidate;
	json_t *value;

	json_object_foreach (constless, candidate, value)
		if (!strcasecmp(candidate, key))
			found = value;
	return json_is_null(found) ? NULL : found;
}

static const char *type_name(json_type type)
{
	static const char *const names[] = {
		[JSON_OBJECT] = "an object",   [JSON_ARRAY] = "an array",
		[JSON_STRING] = "a string",    [JSON_INTEGER] = "an integer",
		[JSON_TRUE] = "true or false",
	};

	return names[type];
}

/* *found: the key's value, NULL where it is missing, null or of another type. JSON_TRUE stands for
 * both booleans. */
static int find_typed(const json_t *object, const char *key, json_type type, json_t **found,
		      struct cni_error *err)
{
	char description[CNI_JSON_DESCRIPTION_SIZE];
	json_t *value = cni_json_get(object, key);
	bool fits = !value || json_typeof(value) == type ||
		    (type == JSON_TRUE && json_is_boolean(value));

	*found = fits ? value : NULL;
	if (fits)
		return 0;
	return cni_error_set(err, CNI_ERROR_DECODE, "\"%s\" must be %s, found %s", key,
			     type_name(type), cni_json_describe(value, description));
}

int cni_json_get_string(const json_t *object, const char *key, const char **value,
			struct cni_error *err)
{
	json_t *found;
	int failed = find_typed(object, key, JSON_STRING, &found, err);

	if (!failed && found)
		*value = json_string_value(found);
	return failed;
}

int cni_json_get_integer(const json_t *object, const char *key, json_int_t *value,
			 struct cni_error *err)
{
	json_t *found;
	int failed = find_typed(object, key, JSON_INTEGER, &found, err);

	if (!failed && found)
		*value = json_integer_value(found);
	return failed;
}

int cni_json_get_boolean(const json_t *object, const char *key, bool *value, struct cni_error *err)
{
	json_t *found;
	int failed = find_typed(object, key, JSON_TRUE, &found, err);

	if (!failed && found)
		*value = json_is_true(found);
	return failed;
}

int cni_json_get_object(const json_t *object, const char *key, json_t **value,
			struct cni_error *err)
{
	return find_typed(object, key, JSON_OBJECT, value, err);
}

int cni_json_get_array(const json_t *object, const char *key, json_t **value, struct cni_error *err)
{
	return find_typed(object, key, JSON_ARRAY, value, err);
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

int cni_json_each_object(const json_t *object, const char *key, cni_json_visit visit, void *context,
			 struct cni_error *err)
{
	json_t *array = NULL;
	const json_t *element;
	size_t index;

	if (cni_json_get_array(object, key, &array, err))
		return -1;
	json_array_foreach (array, index, element) {
		if (cni_json_check_element(element, key, index, err))
			return -1;
		if (visit(element, context, err))
			return cni_error_wrap(err, "%s[%zu]", key, index);
	}
	return 0;
}

/* `kept`: a spelling that stays, or NULL. */
static void delete_spellings(json_t *object, const char *key, const char *kept)
{
	const char *candidate;
	json_t *value;
	void *next;

	json_object_foreach_safe (object, next, candidate, value)
		if (!strcasecmp(candidate, key) && !(kept && !strcmp(candidate, kept)))
			json_object_del(object, candidate);
}

void cni_json_delete(json_t *object, const char *key)
{
	delete_spellings(object, key, NULL);
}

void cni_json_set_new(json_t *object, const char *key, json_t *value)
{
	delete_spellings(object, key, key);
	json_object_set_new(object, key, value);
}

const char *cni_json_describe(const json_t *value, char buffer[CNI_JSON_DESCRIPTION_SIZE])
{
	const char *text = json_string_value(value);
	size_t shown = text ? strlen(text) : 0;
	char digits[32] = "";

	if (text) {
		/* Whole characters, so that it remains UTF-8. */
		if (shown > QUOTED_BYTES)
			for (shown = QUOTED_BYTES; ((unsigned char)text[shown] & 0xc0) == 0x80;)
				shown--;
		snprintf(buffer, CNI_JSON_DESCRIPTION_SIZE, "the string \"%.*s%s\"", (int)shown,
			 text, text[shown] ? "..." : "");
	} else if (json_is_number(value)) {
		/* jansson writes 80.0 for what is no integer, which shows why it was refused. */
		json_dumpb(value, digits, sizeof(digits) - 1,
			   JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
		snprintf(buffer, CNI_JSON_DESCRIPTION_SIZE, "the number %s", digits);
	} else {
		snprintf(buffer, CNI_JSON_DESCRIPTION_SIZE, "%s",
			 !value || json_is_null(value) ? "null"
			 : json_is_true(value)         ? "true"
			 : json_is_false(value)        ? "false"
						       : type_name(json_typeof(value)));
	}
	return buffer;
}
