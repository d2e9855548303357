/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * localhost.h - the host's own processes as clients of mapped ports.
 *
 * Where the host cannot have the programs for it, everything else works: a warning says
 * what does not.
 */
#ifndef HOST_LOCALHOST_H
#define HOST_LOCALHOST_H

#include "conf/conf.h"
#include "host/host.h"

/* For a container with ports: attaches what is missing. */
void localhost_set_up(const struct host *host, const struct conf *conf);

/* For a container with ports: whether it is attached; only a warning where it cannot be.
 * Code 102. */
int localhost_verify(const struct host *host, const struct conf *conf, struct cni_error *err);

/* Without a container: warns where it is wanted and could not be had, or has gone. */
void localhost_warn(const struct host *host, const struct conf *conf);

#endif
