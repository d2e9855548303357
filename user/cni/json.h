/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * json.h - JSON from strangers: parsing with clear errors, and typed look-ups.
 *
 * Keys match without regard to case and of several the last one counts, because
 * Go's decoder does so and runtimes rely on it (go-cni sends "HostPort").
 * A key that is missing and a key that is null are the same.
 */
#ifndef CNI_JSON_H
#define CNI_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "cni/error.h"

/* Where the order of keys is to be unpredictable for strangers without asking a device: with
 * what the kernel gave to the process. */
void cni_json_begin(void);

/* One JSON value and nothing after it; `what` names the text in messages ("the
 * configuration on stdin"). Key order is kept. A new reference, or NULL and code 6. */
json_t *cni_json_parse(const char *text, size_t length, const char *what, struct cni_error *err);
/* The same, and it must be an object. */
json_t *cni_json_parse_object(const char *text, size_t length, const char *what,
			      struct cni_error *err);

/* Borrowed; NULL where the key is missing or null. */
json_t *cni_json_get(const json_t *object, const char *key);

/* Where the key is missing or null, *value stays as it was: preset the default.
 * Where it has another type: code 6, naming the key and what was found.
 * The value is borrowed from the object. */
int cni_json_get_string(const json_t *object, const char *key, const char **value,
			struct cni_error *err);
int cni_json_get_integer(const json_t *object, const char *key, json_int_t *value,
			 struct cni_error *err);
int cni_json_get_boolean(const json_t *object, const char *key, bool *value, struct cni_error *err);
int cni_json_get_object(const json_t *object, const char *key, json_t **value,
			struct cni_error *err);
int cni_json_get_array(const json_t *object, const char *key, json_t **value,
		       struct cni_error *err);

/* An element of an array must be an object: code 6 naming the array and the index. */
int cni_json_check_element(const json_t *element, const char *array, size_t index,
			   struct cni_error *err);

/* An element of an array must be a string, which is borrowed: code 6 as above. */
int cni_json_get_string_element(const json_t *element, const char *array, size_t index,
				const char **value, struct cni_error *err);

/* All spellings of the key. */
void cni_json_delete(json_t *object, const char *key);

/* Sets the key in exactly this spelling and removes its other spellings. Where the
 * spelling is there already it keeps its place. Steals the reference; code 5 (memory). */
int cni_json_set_new(json_t *object, const char *key, json_t *value, struct cni_error *err);

#define CNI_JSON_DESCRIPTION_SIZE 80
/* "the string \"80\"", "the number 80.5", "an object": for messages; returns buffer. */
const char *cni_json_describe(const json_t *value, char buffer[CNI_JSON_DESCRIPTION_SIZE]);

#endif
