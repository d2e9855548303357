/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * array.h - arrays that grow by one element at a time.
 */
#pragma once

#include "lib/memory.h"

/* Doubles the room whenever it is used up: at each power of two. */
static inline void *array_grow(void *array, size_t count, size_t size)
{
	return count & (count - 1) ? array
				   : or_exit(reallocarray(array, count ? 2 * count : 1, size));
}

/* A pointer to a new last element, which holds anything. An array without elements is NULL. */
#define ARRAY_ADD(array, count) \
	((array) = array_grow((array), (count), sizeof(*(array))), &(array)[(count)++])
