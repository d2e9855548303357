/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cleanup.h - variables that free or close what they hold at the end of their scope.
 *
 * Such a variable must be set at its declaration (NULL, -1). TAKE() hands its value over and leaves
 * it empty.
 */
#pragma once

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_free_pointer(void *pointer)
{
	free(*(void **)pointer);
}

static inline void cleanup_json_pointer(json_t **json)
{
	json_decref(*json);
}

static inline void cleanup_close_pointer(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static inline void cleanup_stream_pointer(FILE **stream)
{
	if (*stream)
		fclose(*stream);
}

static inline void cleanup_listing_pointer(DIR **listing)
{
	if (*listing)
		closedir(*listing);
}

#define cleanup_free __attribute__((cleanup(cleanup_free_pointer)))
#define cleanup_json __attribute__((cleanup(cleanup_json_pointer)))
#define cleanup_close __attribute__((cleanup(cleanup_close_pointer)))
#define cleanup_stream __attribute__((cleanup(cleanup_stream_pointer)))
#define cleanup_listing __attribute__((cleanup(cleanup_listing_pointer)))

#define TAKE(pointer) \
	__extension__({ \
		__typeof__(pointer) taken = (pointer); \
		(pointer) = NULL; \
		taken; \
	})
