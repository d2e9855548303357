/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * server.h - the daemon: HTTP over a UNIX socket.
 */
#pragma once

#include "lib/error.h"
#include "ipam/settings.h"

/* Answers requests, each by a process, until SIGTERM or SIGINT; those that were read are answered
 * then. The driver is named after the socket. CNI_ERROR_IO, and what making
 * the socket sets. */
int server_run(struct settings *settings, struct cni_error *err);
