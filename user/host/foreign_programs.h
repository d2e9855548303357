/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * foreign_programs.h - programs of others beside ours: containers and uplinks whose packets must
 * not skip the IP stack, because they would skip programs, qdiscs or IPsec policies of others;
 * warnings of tc programs that run before ours.
 */
#ifndef HOST_FOREIGN_PROGRAMS_H
#define HOST_FOREIGN_PROGRAMS_H

#include "host/container.h"
#include "host/host.h"

/* Chooses the mode of the container's flows, which is off, too, where bandwidth may be limited and
 * our programs cannot see that for themselves. Call it when they are loaded. */
void fast_path_choose_mode(const struct host *host, struct container *container);

/* For ADD: bars the container's veth from the fast path, in the entry to be written, where others
 * have a program or a qdisc at its veth or bridge, or the host has IPsec policies; with a warning.
 * Call it when our programs are attached. `new_qdisc`: the veth got its qdisc for them. */
void fast_path_decide(const struct host *host, struct container *container, bool new_qdisc);

/* Returns whether a program of others follows ours at an uplink. */
bool fast_path_is_barred_at_uplink(const struct host *host, uint32_t ifindex,
				   const struct interface *interface);

/* Looks again at one uplink, and writes what has changed. CNI_ERROR_KERNEL_REFUSED,
 * CNI_ERROR_TRY_AGAIN. */
int fast_path_refresh_uplink(struct host *host, uint32_t ifindex, const struct interface *known,
			     struct cni_error *err);

/* Does the same for all uplinks, and for all containers' veths and bridges, or those of `only` one,
 * with a warning where that is barred. Codes as above, and CNI_ERROR_IO. */
int fast_path_refresh(struct host *host, const struct container *only, struct cni_error *err);

/* Tc programs of others that run before ours are no errors: a program that counts or traces does no
 * harm there, no program says what it answers, and some runtimes stop a container whose CHECK
 * fails. */

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
