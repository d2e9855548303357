/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* api.h - Docker's remote IPAM API: by which socket it comes, and which call is answered by what.
 */
#pragma once

#include <stddef.h>

#include "lib/error.h"
#include "runtimes/ipam/settings.h"

/* The call by which Docker begins to use the driver, after each start of Docker. */
#define API_ACTIVATE "/Plugin.Activate"

/* Answers a POST. Returns the HTTP status, and the answer in *text, malloc'ed: {"Err": "..."}
 * unless the status is 200. */
unsigned int api_answer(const struct settings *settings, const char *path, const char *body,
			size_t length, char **text);

/* Returns {"Err": "..."}, malloc'ed. */
char *api_error_text(const char *message);

/* --- socket.c: the UNIX socket that Docker finds the driver by: systemd's, or one that is made
 * here */

/* Returns the socket that systemd has passed (sd_listen_fds(3)), which listens, and its path in
 * *path, malloc'ed. -1 if there is none, or with CNI_ERROR_INVALID_ENVIRONMENT. */
int socket_take_passed(char **path, struct cni_error *err);

/* Returns a new socket that listens at the path, for root alone, in place of one that nobody
 * listens at. -1 and CNI_ERROR_IO or CNI_ERROR_INVALID_ENVIRONMENT. */
int socket_listen(const char *path, struct cni_error *err);

/* Returns a socket that is connected to the path, or -1 and CNI_ERROR_IO. */
int socket_connect(const char *path, struct cni_error *err);
