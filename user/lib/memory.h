/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * memory.h - allocations, and arrays that grow, of programs that exit on out of memory; state
 * survives a kill, and so an exit. jansson's allocations do the same: what it makes is NULL only
 * for text that is not UTF-8.
 */
#pragma once

#include <stdlib.h>

/* Returns what a function has allocated; ends the program where that is NULL. */
void *or_exit(void *memory) __attribute__((returns_nonnull));

/* Doubles the room whenever it is used up: at each power of two. */
static inline void *array_grow(void *array, size_t count, size_t size)
{
	return count & (count - 1) ? array
				   : or_exit(reallocarray(array, count ? 2 * count : 1, size));
}

/* A pointer to a new last element, which holds anything. An array without elements is NULL. */
#define ARRAY_ADD(array, count) \
	((array) = array_grow((array), (count), sizeof(*(array))), &(array)[(count)++])

/* for_each (item, array, count): `item` points to each element, the first one first. The array may
 * be NULL where there are none. */
#define for_each(item, array, count) \
	for (__typeof__((array) + 0) item = (array), item##_end = (count) ? item + (count) : item; \
	     item != item##_end; item++)
