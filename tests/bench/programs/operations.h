/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* operations.h - what counted.bpf.c counts; after vmlinux.h or the kernel's own. */
#ifndef BPF_PORTMAP_TESTS_OPERATIONS_H
#define BPF_PORTMAP_TESTS_OPERATIONS_H

#define OPERATIONS(X) \
	X(hash)     /* look-ups */ \
	X(array)    /* look-ups */ \
	X(inserted) /* updates of existing entries, too */ \
	X(deleted) \
	X(fib) \
	X(socket)

struct operations {
#define X(name) __u64 name;
	OPERATIONS(X)
#undef X
};

#endif
