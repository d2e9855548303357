/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * interfaces.h - which of the host's interfaces the programs must be at.
 *
 * Every interface with an address of its own that the configuration does not leave out,
 * except loopback, a bond's slaves, bridge ports and containers' veths; those that "uplinks"
 * names, with an address or without; and the bridge of every container. What has been
 * classified stands in the map interfaces.
 */
#ifndef HOST_INTERFACES_H
#define HOST_INTERFACES_H

#include "conf/conf.h"
#include "net/veth.h"
#include "host/host.h"

/* Classifies and attaches to what is new, and writes down addresses that changed. `repair`:
 * also looks whether the programs are still at those known, and attaches them again.
 * `veth` is the container at hand. Codes 102, 5, 11. */
int interfaces_attach(struct host *host, const struct conf *conf, const struct host_veth *veth,
		      bool repair, struct cni_error *err);

/* Whether one that a person names can be attached to. Code 7, saying why not. */
int interfaces_check_named(struct host *host, const char *name, struct cni_error *err);
/* Attaches to it, whatever the conflists say. Codes 7, 102, 5, 11. */
int interfaces_attach_named(struct host *host, const char *name, struct cni_error *err);

/* Brings the map of the host's addresses up to date; interfaces_attach() does that too. */
int interfaces_refresh_addresses(struct host *host, struct cni_error *err);

/* Attaches to whatever known interface lacks its programs, containers' veths too. Codes 102,
 * 5, 11. */
int interfaces_repair(struct host *host, struct cni_error *err);

/* Whether the programs are at all interfaces known. Code 102, naming one and what it lacks. */
int interfaces_verify(struct host *host, struct cni_error *err);

/* Forgets interfaces that are gone, and leaves those that are no uplinks any more because
 * they were put into a bridge or a bond. */
void interfaces_sweep(struct host *host);

#endif
