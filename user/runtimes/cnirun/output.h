/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * output.h - what cnirun and cni-ipam print: results on stdout, everything else on stderr.
 *
 * It quotes plugins, conflists and the cache, and a terminal may display it: control characters
 * other than line feeds become '?', in JSON \uNNNN.
 */
#pragma once

#include <jansson.h>

#include "lib/error.h"

/* Prints it indented, with a newline. CNI_ERROR_IO. */
int output_json(const json_t *value, struct cni_error *err);

/* Prints text. Its errors show in output_flush(): CNI_ERROR_IO. */
void output_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
int output_flush(struct cni_error *err);

/* Prints "PROGRAM: warning: ..." on stderr. */
void output_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints "PROGRAM: ..." on stderr, the details after the message. */
void output_error(struct cni_error *err);

typedef int output_run(int argc, char **argv, struct cni_error *err);
/* What main() of each of these programs does: runs it, and has its error reported. Returns the exit
 * status. */
int output_main(int argc, char **argv, output_run *run, void (*report)(struct cni_error *err));
