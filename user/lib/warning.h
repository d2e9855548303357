/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * warning.h - non-fatal problems, a line each on stderr.
 */
#ifndef LIB_WARNING_H
#define LIB_WARNING_H

/* Prints one line, prefixed with the plugin's name; no newline needed. */
void warning(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, of what was put right or belongs to another container: it is not kept. */
void warning_passing(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What this run has warned of: whole lines, each ended by a line feed, as many as have room. */
const char *warnings_kept(void);

#endif
