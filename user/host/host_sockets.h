/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * host_sockets.h - the host's own processes and mapped ports.
 *
 * With "localhost" they reach the ports: by programs at sockets, and by one at lo for what those
 * leave as it is. Where the host cannot have the former, a warning says so and all goes by lo. With
 * "reserveHostPorts" they cannot bind to the ports. Where the host cannot have the programs for
 * that, ADD fails.
 */
#pragma once

#include "host/container.h"
#include "host/host.h"

/* For ADD: attaches the programs that the container's ports need. CNI_ERROR_KERNEL_REFUSED,
 * CNI_ERROR_TRY_AGAIN. */
int host_sockets_attach(struct host *host, const struct conf *conf, struct cni_error *err);

/* For CHECK: checks whether they are attached. CNI_ERROR_KERNEL_REFUSED. */
int host_sockets_verify(const struct host *host, const struct conf *conf, struct cni_error *err);

/* For STATUS: checks whether ADD could attach them, as far as that can be told without loading
 * anything. CNI_ERROR_KERNEL_REFUSED. */
int host_sockets_probe(const struct host *host, const struct conf *conf, struct cni_error *err);

/*
 * With "reserveHostPorts": CNI_ERROR_PORT_TAKEN, naming the process, where a process of the host
 * has one of the ports; one of the container's own engine does not count. CNI_ERROR_KERNEL_REFUSED
 * where the kernel cannot say. After host_settle().
 *
 * ADD calls it twice. The call after the claim is the one that counts: from then on no process can
 * bind, and one that did before is found. (Except one that the programs let pass microseconds
 * before the claim, and that has not finished bind(2) yet.) The call before the claim keeps a
 * process that has had the port for long from losing packets to a mapping that is then undone.
 */
int host_sockets_refuse(const struct host *host, const struct container *container,
			struct cni_error *err);

/* For ADD, where the ports are not reserved: warns of processes of the host that have one of them,
 * and get nothing any more that comes to it. Not where its engine holds them for it. */
void host_sockets_warn(const struct host *host, const struct container *container);
