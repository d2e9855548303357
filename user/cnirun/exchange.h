/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * exchange.h - what passes through a plugin's stdin and stdout until it has ended.
 */
#ifndef CNIRUN_EXCHANGE_H
#define CNIRUN_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "cni/error.h"
#include "cnirun/execute.h"

struct exchange {
	const char *file; /* for messages */
	pid_t pid;
	bool ended; /* and waited for: output->status tells how */
	/* Our ends of its pipes, which do not block; -1: closed. */
	int input;
	int output;
	const char *unsent;
	size_t unsent_length;
	struct execute_output *result;
	size_t room; /* of the text of `result` */
};

/* Until the plugin has ended and its stdout is at the end. Code 5, after which the plugin
 * may still run: it did not end within `timeout` seconds (0: as long as it takes), or wrote
 * more than a result can be. A process that it left behind and that keeps its stdout open
 * is waited for only a moment. */
int exchange_all(struct exchange *exchange, unsigned int timeout, struct cni_error *err);

void exchange_close(struct exchange *exchange);

#endif
