/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * networks.h - what each conflist last said about interfaces, kept for `bpf-portmap attach`, which
 * is given no conflist.
 */
#ifndef DATAPATH_RECORDS_NETWORKS_H
#define DATAPATH_RECORDS_NETWORKS_H

#include "conf/conf.h"
#include "datapath/load/datapath.h"

/* Writes it where it has changed. A failure is a warning: only `attach` needs it. */
void network_remember(const struct objects *objects, const char *name, const struct conf *conf);

/* Calls visit with a conf that has the patterns, for every network that has an attachment; forgets
 * the others. Stops where visit fails. CNI_ERROR_KERNEL_REFUSED and what visit sets. */
int networks_visit(const struct datapath *datapath,
		   int (*visit)(const struct conf *conf, void *context, struct cni_error *err),
		   void *context, struct cni_error *err);

#endif
