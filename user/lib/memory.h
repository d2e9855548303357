/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * memory.h - allocations of a program that ends where there is no memory.
 *
 * All of our programs may be killed at any instant, so they may end at any instant, too. jansson's
 * allocations end the program as well: what it makes is NULL only for text that is not UTF-8.
 */
#ifndef LIB_MEMORY_H
#define LIB_MEMORY_H

#include <stdlib.h>

/* Returns what a function has allocated; ends the program where that is NULL. */
void *need(void *memory) __attribute__((returns_nonnull));

#endif
