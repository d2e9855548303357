/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * write_all.h - write(2) until everything is written.
 */
#ifndef CNI_WRITE_ALL_H
#define CNI_WRITE_ALL_H

#include <stddef.h>

/* 0, or -1 and errno; a part may have been written then. */
int cni_write_all(int fd, const char *text, size_t length);

#endif
