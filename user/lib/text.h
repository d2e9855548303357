/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * text.h - formats text, and makes text from untrusted sources safe for a terminal or for JSON.
 */
#pragma once

#include <stdarg.h>

/* Returns a malloc'ed text. */
char *cni_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *cni_format_list(const char *format, va_list arguments);

/* Puts a '?' in place of each byte that a terminal would obey instead of showing it: control
 * characters (escape sequences begin with one) except those in `kept` ("\n"; "" for none), marks
 * that change the direction of writing, and bytes that are not UTF-8. */
void cni_printable(char *text, const char *kept);

/* Puts a '?' in place of each byte that is not UTF-8. */
void cni_make_utf8(char *text);
