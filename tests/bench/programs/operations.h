/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* operations.h - the counters of counted.bpf.c; to be included after the kernel's headers. */
#pragma once

#define OPERATIONS(X) \
	X(hash)     /* look-ups */ \
	X(array)    /* look-ups */ \
	X(inserted) /* also updates */ \
	X(deleted) \
	X(fib) \
	X(socket)

struct operations {
#define X(name) __u64 name;
	OPERATIONS(X)
#undef X
};
