/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * run_before.h - warnings of tc programs of others that run before ours.
 *
 * They are no errors: a program that counts or traces does no harm there, no program says what it
 * answers, and some runtimes stop a container whose CHECK fails.
 */
#ifndef HOST_RUN_BEFORE_H
#define HOST_RUN_BEFORE_H

#include "host/container.h"
#include "host/host.h"

/* Warns of those at an interface that ours are attached to. `new_qdisc`: it got its qdisc for our
 * filter. */
void run_before_warn(struct host *host, uint32_t ifindex, const struct interface *interface,
		     bool new_qdisc);

/* For ADD: warns of those at the container's veth and bridge. */
void run_before_warn_container(struct host *host, const struct container *container,
			       bool new_qdisc);

/* Warns of those at every interface that has programs of ours. */
void run_before_warn_all(struct host *host);

#endif
