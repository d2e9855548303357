/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * kernel_names.h - the kernel's names for why and where it drops packets.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define FUNCTION_NAME_SIZE 96

/* An address in the kernel's code, by the function that it is in. */
struct kernel_function {
	uint64_t address;
	char name[FUNCTION_NAME_SIZE]; /* "nf_hook_slow+0xa3"; "": not known */
};

struct btf;

/* Read when they are first asked for. Begins as {0}. */
struct kernel_names {
	struct btf *btf;
	struct kernel_function *functions;
	size_t function_count;
};

/* Reads ahead what takes long. */
void kernel_names_prepare(struct kernel_names *names);
void kernel_names_release(struct kernel_names *names);

/* Returns "NETFILTER_DROP"; NULL: the kernel does not say. */
const char *kernel_reason(struct kernel_names *names, uint32_t reason);
/* Returns "nf_hook_slow+0xa3", or "" where that is not known. */
const char *kernel_function(struct kernel_names *names, uint64_t address);
