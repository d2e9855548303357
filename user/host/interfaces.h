/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * interfaces.h - the host's interfaces, as the living networks want them: looked at, planned, and
 * changed where something is to be changed.
 *
 * Nothing is locked while there is nothing to do. Else all is looked at again under the lock, so
 * that no two commands change the host by looks that contradict each other.
 */
#pragma once

#include "datapath/records/networks.h"
#include "host/container.h"
#include "host/host.h"
#include "plan/look.h"
#include "plan/plan.h"

/* What is looked at. Begins as {0}: interfaces that have an address or that a conflist names, and
 * of those that the map has already only what may have changed. */
struct look_at {
	const struct container *container; /* the one at hand, its veth found; NULL: none */
	bool adds;                         /* it is added */
	char *const *named;                /* by an administrator, up to a NULL; NULL: none */
	bool entries;                      /* every entry of the map, and every interface whole */
	bool veths;                        /* containers' veths, too */
	bool veth_hooks;                   /* and what hangs there */
	bool stops_at_news;                /* looks at no interface if there is news of networks */
	bool refuses_damage;               /* host_settle() fails for it and changes nothing */
};

/* A look, and what it points into. Begins as {0}. */
struct host_look {
	struct look found;
	struct known_networks networks;

	/* While it is made. */
	struct host *host;
	const struct look_at *at;
	bool knows_qdiscs;
	struct qdisc_list qdiscs;
};

void host_look_release(struct host_look *look);

#define cleanup_look __attribute__((cleanup(host_look_release)))

/* Prints the plan's warnings. */
void plan_warn(const struct plan *plan);

/* Makes a look and its plan, with the addresses that the host has read. Release both also after a
 * failure. CNI_ERROR_IO, CNI_ERROR_KERNEL_REFUSED. */
int host_plan(struct host_look *look, struct plan *plan, struct host *host,
	      const struct look_at *at, struct cni_error *err);

/* Deletes the entry of an interface that is still there, and counts that: connections that have
 * asked whether they may leave there ask again. Call it with the lock. CNI_ERROR_KERNEL_REFUSED. */
int interface_forget(const struct objects *objects, uint32_t ifindex, struct cni_error *err);

/* Brings the host to where it should be: programs at interfaces, their entries, the host's
 * addresses, what is known of networks. *plan is the last one that was made, without what was done
 * by then, and is to be released. A failure at one interface does not keep the others from it, and
 * one at an interface that has gone does not matter. Codes as above, and CNI_ERROR_TRY_AGAIN. */
int host_settle(struct host *host, const struct look_at *at, struct plan *plan,
		struct cni_error *err);

/* For one that is to be added: finds the veth, has maps and programs in the kernel, brings the host
 * to where it should be, but for the veth's hooks, and makes the claims whole. Release the plan
 * also after a failure. Errors as of container_find_veth(), host_make_ready() and
 * host_settle(). */
int container_prepare(struct container *container, struct host *host, struct plan *plan,
		      struct cni_error *err);

/* CHECK and STATUS: fails where the plan says that something is damaged.
 * CNI_ERROR_KERNEL_REFUSED naming one interface and what it lacks. */
int plan_refuse_damage(const struct plan *plan, struct cni_error *err);
