/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * text.h - formats text, makes text from untrusted sources safe for a terminal or for JSON, and
 * compares versions.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>

/* Of an engine's container ID, and what engines show of it. */
#define ENGINE_ID_DIGITS 64
#define ENGINE_ID_SHOWN 12

/* Returns the hexadecimal digits by which an engine names a container, behind the namespace and
 * hyphen of nerdctl; NULL: it is no engine's ID. */
const char *engine_id_digits(const char *container_id);

/* Returns a malloc'ed text. */
char *cni_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *cni_format_list(const char *format, va_list arguments);

/* Each of the names that end with a zero byte, and the whole with another one. */
#define for_each_name(name, names) for (const char *name = (names); *name; name += strlen(name) + 1)

/* Returns whether the text ends with this one, or is this one. */
bool text_ends_with(const char *text, const char *end);

/* Puts a '?' in place of each byte that a terminal would obey instead of showing it: control
 * characters (escape sequences begin with one) except those in `kept` ("\n"; "" for none), marks
 * that change the direction of writing, and bytes that are not UTF-8. */
void cni_printable(char *text, const char *kept);

/* Puts a '?' in place of each byte that is not UTF-8. */
void cni_make_utf8(char *text);

/* Returns which of two versions is older: up to three numbers; text that is no number counts as 0.
 * As packages have it, "0.2~rc1" is older than "0.2". */
bool version_is_older(const char *a, const char *b);
