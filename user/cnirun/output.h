/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * output.h - what cnirun says: results on stdout, everything else on stderr.
 *
 * Texts of plugins, lists and the cache are in what it says, and a terminal may be what
 * gets it: control characters other than line feeds come out as '?', in JSON as \uNNNN.
 */
#ifndef CNIRUN_OUTPUT_H
#define CNIRUN_OUTPUT_H

#include <jansson.h>

#include "cni/error.h"

/* Pretty-printed, with a newline. Code 5. */
int output_json(const json_t *value, struct cni_error *err);

/* A line of a table or of help. Check output_flush() at the end. */
void output_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
int output_flush(struct cni_error *err);

/* "cnirun: warning: ..." on stderr. */
void output_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* "cnirun: ..." on stderr, the details after the message. */
void output_error(const struct cni_error *err);

#endif
