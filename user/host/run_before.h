/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * run_before.h - warnings of other people's tc programs that run before ours.
 *
 * Warnings, not errors: a program that counts or traces does no harm there, none says what it
 * answers, and a CHECK that fails makes some runtimes take the container down.
 */
#ifndef HOST_RUN_BEFORE_H
#define HOST_RUN_BEFORE_H

#include "host/container.h"
#include "host/host.h"

/* At an interface to which ours have been attached. `new_qdisc`: it has got the qdisc for our
 * filter just now. */
void run_before_warn(struct host *host, uint32_t ifindex, const struct interface *interface,
		     bool new_qdisc);

/* For ADD: at the container's veth and bridge. */
void run_before_warn_container(struct host *host, const struct container *container,
			       bool new_qdisc);

/* At every interface that has programs of ours. */
void run_before_warn_all(struct host *host);

#endif
