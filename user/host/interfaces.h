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
#include "net/veth.h"
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

#endif
