/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* cache.c - decodes what libcni keeps of an ADD. */
#include "cni/cache.h"

#include <nettle/base64.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cleanup.h"
#include "lib/memory.h"

char *cni_cache_decode_list(const char *config, size_t *length)
{
	cleanup_free char *list = or_exit(malloc(BASE64_DECODE_LENGTH(strlen(config)) + 1));
	struct base64_decode_ctx decoder;

	*length = BASE64_DECODE_LENGTH(strlen(config));
	base64_decode_init(&decoder);
	if (!base64_decode_update(&decoder, length, (uint8_t *)list, strlen(config), config) ||
	    !base64_decode_final(&decoder))
		return NULL;
	return TAKE(list);
}

char *cni_cache_format_args(const json_t *pairs)
{
	const char *key, *value, *separator = "";
	const json_t *pair;
	char *text = NULL;
	size_t size, i;
	FILE *stream = or_exit(open_memstream(&text, &size));

	json_array_foreach (pairs, i, pair) {
		key = json_string_value(json_array_get(pair, 0));
		value = json_string_value(json_array_get(pair, 1));
		if (!key || !value)
			continue;
		fprintf(stream, "%s%s=%s", separator, key, value);
		separator = ";";
	}
	return or_exit(fclose(stream) ? NULL : text);
}
