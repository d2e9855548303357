/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* memory.c - allocations of a program that ends where there is no memory. */
#include "lib/memory.h"

#include <jansson.h>
#include <stdio.h>
#include <sysexits.h>

void *or_exit(void *memory)
{
	if (memory)
		return memory;
	fputs("out of memory\n", stderr);
	exit(EX_OSERR); /* 1 is an answer of some commands */
}

static void *allocate(size_t size)
{
	return or_exit(malloc(size ? size : 1));
}

/* Before main(): jansson must have its functions before it has anything that they free. */
__attribute__((constructor)) static void set_allocation(void)
{
	json_set_alloc_funcs(allocate, free);
}
