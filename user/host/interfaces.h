/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * interfaces.h - which of the host's interfaces the programs must be at.
 *
 * Every interface with an address of its own that the configuration does not leave out, except
 * loopback, a bond's slaves, bridge ports and containers' veths; every interface that "uplinks"
 * names, with an address or without; and the bridge of every container. The map interfaces has an
 * entry for each.
 */
#ifndef HOST_INTERFACES_H
#define HOST_INTERFACES_H

#include "conf/conf.h"
#include "net/link.h"
#include "host/host.h"

/* Classifies and attaches to what is new, writes addresses that changed, and brings the map of the
 * host's addresses up to date. `repair`: also attaches again where the programs are gone. `veth` is
 * the container at hand. CNI_ERROR_KERNEL_REFUSED, CNI_ERROR_IO, CNI_ERROR_TRY_AGAIN. */
int interfaces_attach(struct host *host, const struct conf *conf, const struct host_veth *veth,
		      bool repair, struct cni_error *err);

/* Checks whether one that an administrator names can be attached to.
 * CNI_ERROR_INVALID_CONFIGURATION saying why not. */
int interfaces_check_named(struct host *host, const char *name, struct cni_error *err);
/* Attaches to it, whatever the conflists say. Codes as of both functions above. */
int interfaces_attach_named(struct host *host, const char *name, struct cni_error *err);

/* Checks whether the programs are at all of the host's interfaces in the map.
 * CNI_ERROR_KERNEL_REFUSED naming one and what it lacks. */
int interfaces_verify(struct host *host, struct cni_error *err);

/* Attaches to every interface in the map that lacks its programs, containers' veths too.
 * CNI_ERROR_KERNEL_REFUSED, CNI_ERROR_IO, CNI_ERROR_TRY_AGAIN. */
int interfaces_repair(struct host *host, struct cni_error *err);

/* Deletes the entries of interfaces that are gone. Detaches from interfaces that were put into a
 * bridge or a bond and so are uplinks no more. */
void interfaces_sweep(struct host *host);

#endif
