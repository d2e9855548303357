/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * reservation.h - reserveHostPorts: ports that no process of the host has or can bind to.
 *
 * Where the host cannot have the programs for it, ADD fails: who reserves a port relies on
 * its being so.
 */
#ifndef HOST_RESERVATION_H
#define HOST_RESERVATION_H

#include "host/container.h"
#include "host/host.h"

/* For a container with ports: attaches what is missing, if it wants them reserved. Code 102. */
int reservation_set_up(const struct host *host, const struct conf *conf, struct cni_error *err);

/*
 * If it wants them reserved: whether a process of the host has one of the ports, in which case the
 * error, CNI_ERROR_PORT_TAKEN, names the process. What the container's own engine holds does not
 * count. CNI_ERROR_KERNEL_REFUSED where the kernel cannot say. After interfaces_attach().
 *
 * ADD looks twice. The look after the claim is the one that counts: from then on no process can
 * bind, and one that did before is found. (Except one that the programs let pass microseconds
 * before the claim, and that has not finished bind(2) yet.) The look before the claim keeps a
 * process that has had the port for long from losing packets to a mapping that is then undone.
 */
int reservation_check(const struct host *host, const struct container *container,
		      const char *container_id, struct cni_error *err);

/* For a container with ports: whether it is attached. Code 102. */
int reservation_verify(const struct host *host, const struct conf *conf, struct cni_error *err);

/* Without a container: whether it could be had, as far as can be told without loading
 * anything. Code 102. */
int reservation_probe(const struct conf *conf, struct cni_error *err);

#endif
