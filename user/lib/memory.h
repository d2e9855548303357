/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * memory.h - allocations of programs that exit on out of memory; state survives a kill, and so an
 * exit. jansson's allocations do the same: what it makes is NULL only for text that is not UTF-8.
 */
#pragma once

#include <stdlib.h>

/* Returns what a function has allocated; ends the program where that is NULL. */
void *or_exit(void *memory) __attribute__((returns_nonnull));
