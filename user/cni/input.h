/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * input.h - reading a whole file, pipe or stdin, with a limit.
 */
#ifndef CNI_INPUT_H
#define CNI_INPUT_H

#include <stddef.h>

#include "cni/error.h"

/* Far above any configuration: 10,000 port mappings take about a megabyte. */
#define CNI_INPUT_LIMIT ((size_t)16 << 20)

/* Reads to the end. *text is malloc'ed and has a NUL after its *length bytes. Code 5
 * when reading fails or there are more than `limit` bytes; `what` names the source. */
int cni_input_read(int fd, size_t limit, const char *what, char **text, size_t *length,
		   struct cni_error *err);

#endif
