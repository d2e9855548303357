/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * json.h - JSON from untrusted sources: parsing with clear errors, and typed look-ups.
 *
 * Keys match without regard to case, and the last of several spellings counts: Go's decoder does
 * so, and runtimes rely on it (go-cni sends "HostPort"). A key that is null counts as missing.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/error.h"

/* Seeds jansson's hash tables with the random bytes that the kernel gave to the process, so that
 * jansson need not open a device. */
void cni_json_begin(void);

/* Parses one JSON value and nothing after it; `what` names the text in messages ("the configuration
 * on stdin"). The order of keys is kept. A new reference, or NULL and CNI_ERROR_DECODE. */
json_t *cni_json_parse(const char *text, size_t length, const char *what, struct cni_error *err);
/* Does the same, and it must be an object. */
json_t *cni_json_parse_object(const char *text, size_t length, const char *what,
			      struct cni_error *err);

/* Returns a borrowed value; NULL where the key is missing or null. */
json_t *cni_json_get(const json_t *object, const char *key);

/* Where the key is missing, *value stays as it was, so that callers preset the default. Values are
 * borrowed from the object. CNI_ERROR_DECODE for another type. */
int cni_json_get_string(const json_t *object, const char *key, const char **value,
			struct cni_error *err);
int cni_json_get_integer(const json_t *object, const char *key, json_int_t *value,
			 struct cni_error *err);
int cni_json_get_boolean(const json_t *object, const char *key, bool *value, struct cni_error *err);
/* NULL where the key is missing. */
int cni_json_get_object(const json_t *object, const char *key, json_t **value,
			struct cni_error *err);
int cni_json_get_array(const json_t *object, const char *key, json_t **value,
		       struct cni_error *err);

typedef int (*cni_json_visit)(const json_t *element, void *context, struct cni_error *err);
/* Visits each element of the key's array until a visit fails, whose error it wraps. An element that
 * is not an object: CNI_ERROR_DECODE. */
int cni_json_each_object(const json_t *object, const char *key, cni_json_visit visit, void *context,
			 struct cni_error *err);

/* Fails with CNI_ERROR_DECODE unless an array's element is an object. */
int cni_json_check_element(const json_t *element, const char *array, size_t index,
			   struct cni_error *err);

/* Does the same for a string, which is borrowed. */
int cni_json_get_string_element(const json_t *element, const char *array, size_t index,
				const char **value, struct cni_error *err);

/* Deletes all spellings of the key. */
void cni_json_delete(json_t *object, const char *key);

/* Sets the key in exactly this spelling, in the place of the same spelling if there is one, and
 * removes the other spellings. Steals the reference. */
void cni_json_set_new(json_t *object, const char *key, json_t *value);

#define CNI_JSON_DESCRIPTION_SIZE 80
/* Writes "the string \"80\"", "the number 80.5", "an object": for messages; returns buffer. */
const char *cni_json_describe(const json_t *value, char buffer[CNI_JSON_DESCRIPTION_SIZE]);
