/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * networks.h - what each list last said about interfaces, kept for `bpf-portmap attach`,
 * which no list is given to.
 */
#ifndef DATAPATH_RECORDS_NETWORKS_H
#define DATAPATH_RECORDS_NETWORKS_H

#include "conf/conf.h"
#include "datapath/load/datapath.h"

/* Writes down what is new. A failure is a warning: only `attach` does less. */
void network_remember(const struct objects *objects, const char *name, const struct conf *conf);

/* Calls visit with a conf that has the patterns, for every network that has an attachment;
 * forgets the others. Stops where visit fails. Codes 102 and what visit sets. */
int networks_visit(const struct datapath *datapath,
		   int (*visit)(const struct conf *conf, void *context, struct cni_error *err),
		   void *context, struct cni_error *err);

#endif
