/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * args.c - CNI_ARGS, as text and as the cache keeps it.
 */
#define _GNU_SOURCE
#include "cnirun/args.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cni/cleanup.h"

static int parse_pair(json_t *pairs, const char *text, size_t length, struct cni_error *err)
{
	const char *equals = memchr(text, '=', length);
	size_t key = equals ? (size_t)(equals - text) : 0;
	json_t *pair;

	/* types.LoadArgs(), by which plugins read them, takes no "=" in a value either. */
	if (!key || key + 1 == length || memchr(equals + 1, '=', length - key - 1))
		return cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT,
				     "invalid CNI_ARGS pair \"%.*s\": must be KEY=VALUE with one "
				     "\"=\", pairs are separated by semicolons",
				     (int)length, text);
	pair = json_pack("[s%, s%]", text, key, equals + 1, length - key - 1);
	if (!pair)
		return cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT,
				     "invalid CNI_ARGS pair \"%.*s\": not UTF-8", (int)length,
				     text);
	return json_array_append_new(pairs, pair) ? cni_error_no_memory(err) : 0;
}

json_t *args_parse(const char *text, struct cni_error *err)
{
	cleanup_json json_t *pairs = json_array();

	if (!pairs) {
		cni_error_no_memory(err);
		return NULL;
	}
	while (*text) {
		size_t length = strcspn(text, ";");

		if (parse_pair(pairs, text, length, err))
			return NULL;
		text += length;
		if (*text == ';' && !*++text && parse_pair(pairs, text, 0, err))
			return NULL;
	}
	return TAKE(pairs);
}

char *args_format(const json_t *pairs)
{
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);
	const json_t *pair;
	size_t index;

	if (!stream)
		return NULL;
	json_array_foreach (pairs, index, pair)
		fprintf(stream, "%s%s=%s", index ? ";" : "",
			json_string_value(json_array_get(pair, 0)),
			json_string_value(json_array_get(pair, 1)));
	if (!fclose(stream))
		return text;
	free(text);
	return NULL;
}
