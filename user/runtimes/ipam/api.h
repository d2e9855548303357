/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* api.h - Docker's remote IPAM API: which call is answered by what. */
#pragma once

#include <stddef.h>

#include "runtimes/ipam/settings.h"

/* The call by which Docker begins to use the driver, after each start of Docker. */
#define API_ACTIVATE "/Plugin.Activate"

/* Answers a POST. Returns the HTTP status, and the answer in *text, malloc'ed: {"Err": "..."}
 * unless the status is 200. */
unsigned int api_answer(const struct settings *settings, const char *path, const char *body,
			size_t length, char **text);

/* Returns {"Err": "..."}, malloc'ed. */
char *api_error_text(const char *message);
