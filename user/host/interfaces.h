/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * interfaces.h - the host's interfaces, as the living networks want them: looked at, planned, and
 * changed where something is to be changed.
 *
 * Nothing is locked while there is nothing to do. Else all is looked at again under the lock, so
 * that no two commands change the host by looks that contradict each other.
 */
#pragma once

#include "host/look.h"
#include "plan/plan.h"

/* Prints the plan's warnings. */
void plan_warn(const struct plan *plan);

/* Makes a look and its plan. Release both also after a failure. CNI_ERROR_IO,
 * CNI_ERROR_KERNEL_REFUSED. */
int host_plan(struct host_look *look, struct plan *plan, struct host *host,
	      const struct look_at *at, struct cni_error *err);

/* Brings the host to where it should be: programs at interfaces, their entries, the host's
 * addresses, what is known of networks. *plan is the last one that was made, without what was done
 * by then, and is to be released. A failure at one interface does not keep the others from it, and
 * one at an interface that has gone does not matter. Codes as above, and CNI_ERROR_TRY_AGAIN. */
int host_settle(struct host *host, const struct look_at *at, struct plan *plan,
		struct cni_error *err);

/* For an ADD that has claimed what its container asks for: its network has a living container. */
void network_has_container(const struct host *host, const struct container *container);

/* CHECK and STATUS: fails where the plan says that something is damaged.
 * CNI_ERROR_KERNEL_REFUSED naming one interface and what it lacks. */
int plan_refuse_damage(const struct plan *plan, struct cni_error *err);
