/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * socket.h - the UNIX socket that Docker finds the driver by: systemd's, or one that is made here.
 */
#pragma once

#include "lib/error.h"

/* Returns the socket that systemd has passed (sd_listen_fds(3)), which listens, and its path in
 * *path, malloc'ed. -1 if there is none, or with CNI_ERROR_INVALID_ENVIRONMENT. */
int socket_take_passed(char **path, struct cni_error *err);

/* Returns a new socket that listens at the path, for root alone, in place of one that nobody
 * listens at. -1 and CNI_ERROR_IO or CNI_ERROR_INVALID_ENVIRONMENT. */
int socket_listen(const char *path, struct cni_error *err);

/* Returns a socket that is connected to the path, or -1 and CNI_ERROR_IO. */
int socket_connect(const char *path, struct cni_error *err);
