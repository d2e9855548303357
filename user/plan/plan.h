/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * plan.h - what has to be changed, so that the host is as the living networks and the container at
 * hand want it: a pure function of a look. host/interfaces.c carries it out.
 *
 * ADD, CHECK, STATUS, `repair` and doctor make the same plan: ADD and `repair` carry it out, CHECK
 * and STATUS fail where it says that something is damaged.
 */
#pragma once

#include "datapath/attach/hooks.h"
#include "plan/look.h"

enum change_kind {
	CHANGE_INTERFACE, /* programs at its hooks, then its entry */
	CHANGE_FORGET,    /* none of our programs, then no entry */
};

#define CHANGE_WHAT_SIZE 192

struct change {
	enum change_kind kind;
	struct link_name at;
	struct interface entry; /* as it is to be; of CHANGE_FORGET: as it was */
	bool writes_entry;      /* it is another one than in the map */
	struct hook_changes hooks;
	/* Programs that were there, or should be, are not: for CHECK and STATUS an error. What came
	 * since the last look is not damaged. */
	bool is_damage;
	char what[CHANGE_WHAT_SIZE];    /* for reports: "attached", "left: it is gone"; or "" */
	char missing[CHANGE_WHAT_SIZE]; /* of damage: "from_uplink is not attached at ingress" */
};

/* Begins as {0}. */
struct plan {
	const struct look *look; /* that it is made of; NULL once it is made */
	struct change *changes;
	size_t count;
	/* Of each of the host's interfaces with an address (struct address_list), whether no port
	 * is mapped there. */
	bool *excluded;
	bool *served; /* and whether it is an uplink, or a bridge of containers */
	/* Of the container at hand: the entry of its veth, and the mode of its flows; and where it
	 * is added, what has to be changed at the veth's hooks, and where that is. */
	struct interface veth;
	enum fast_path fast_path;
	struct hook_changes veth_hooks;
	struct link_name veth_at;
	char *unmatched_uplinks; /* a sentence; NULL: "uplinks" match an interface */
	char **warnings;
	size_t warning_count;
};

/* Makes the plan; release it also after a failure. CNI_ERROR_KERNEL_REFUSED where the veth of the
 * container at hand cannot have its program. */
int plan_make(struct plan *plan, const struct look *look, struct cni_error *err);
void plan_release(struct plan *plan);

/* Returns the role of a container's veth. */
static inline enum interface_role plan_role(const struct host_veth *veth)
{
	return veth->bridge.ifindex ? ROLE_PORT : ROLE_ROUTED;
}

/* Returns the first change that is damage, or NULL. */
const struct change *plan_find_damage(const struct plan *plan);

#define cleanup_plan __attribute__((cleanup(plan_release)))
