/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * base64.h - bytes to base64 and back (RFC 4648, section 4).
 *
 * The cache needs it: libcni keeps the list in a Go []byte, which is base64 in JSON.
 */
#ifndef CNIRUN_BASE64_H
#define CNIRUN_BASE64_H

#include <stddef.h>

/* malloc'ed text, or NULL when there is no memory. */
char *base64_encode(const void *data, size_t length);

/* malloc'ed bytes with a NUL after their *length, or NULL when the text is not base64
 * with its padding, or there is no memory. */
char *base64_decode(const char *text, size_t *length);

#endif
