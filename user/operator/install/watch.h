/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * watch.h - `bpf-portmap install --watch`: installs again what agents of the network replace, and
 * does what nobody else does on a node of Kubernetes: `repair`, from time to time.
 */
#ifndef OPERATOR_INSTALL_WATCH_H
#define OPERATOR_INSTALL_WATCH_H

#include <stdint.h>

#include "operator/install/installer.h"

/* Until SIGTERM or SIGINT, which leave everything in place: 0. `every`: seconds from one `repair`
 * to the next. CNI_ERROR_IO. */
int watch_run(struct installer *installer, uint32_t every, struct cni_error *err);

#endif
