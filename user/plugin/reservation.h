/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * reservation.h - reserveHostPorts: ports that no process of the host can bind to.
 *
 * Where the host cannot have the programs for it, ADD fails: who reserves a port relies on
 * its being so.
 */
#ifndef PLUGIN_RESERVATION_H
#define PLUGIN_RESERVATION_H

#include "conf/conf.h"
#include "plugin/host.h"

/* For a container with ports: attaches what is missing, if it wants them reserved. Code 102. */
int reservation_set_up(const struct host *host, const struct conf *conf, struct cni_error *err);

/* For a container with ports: whether it is attached. Code 102. */
int reservation_verify(const struct host *host, const struct conf *conf, struct cni_error *err);

/* Without a container: whether it could be had, as far as can be told without loading
 * anything. Code 102. */
int reservation_probe(const struct conf *conf, struct cni_error *err);

#endif
