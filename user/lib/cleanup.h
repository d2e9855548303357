/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cleanup.h - variables that free or close what they hold at the end of their scope.
 *
 * Such a variable must be set at its declaration (NULL, -1). TAKE() hands its value over and leaves
 * it empty.
 */
#ifndef LIB_CLEANUP_H
#define LIB_CLEANUP_H

#include <jansson.h>
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
}

#define cleanup_free __attribute__((cleanup(cleanup_free_pointer)))
#define cleanup_json __attribute__((cleanup(cleanup_json_pointer)))
#define cleanup_close __attribute__((cleanup(cleanup_close_pointer)))

#define TAKE(pointer) \
	__extension__({ \
		__typeof__(pointer) taken = (pointer); \
		(pointer) = NULL; \
		taken; \
	})

#endif
