/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * replacements.h - a container that takes ports over from one of the same workload, which still
 * lives: engines set the new one's network up before they take the old one's down. An entry of
 * portmaps has them all (struct portmap_succession). All of it needs the lock.
 */
#pragma once

#include "datapath/load/maps.h"
#include "lib/error.h"

/* Returns whether both are the same pod, Nomad group or named container. False for names that are
 * cut off, or that nobody has given. */
bool workload_is_same(const struct workload *a, const struct workload *b);

/* Returns whether the slot's owner is a container of this workload. */
bool workload_has_slot(const struct objects *objects, const struct workload *workload,
		       uint32_t number, const struct slot *slot);

/* Returns the one of the port's containers that is this owner, or NULL. */
struct portmap *succession_find(struct portmap_succession *entry, struct owner owner);
/* Takes the owner out of the port's containers; those that it had replaced move up. */
void succession_remove(struct portmap_succession *entry, struct owner owner);

/* Gives the port to the container that replaces the one that has it. *lost: the earliest of them,
 * for which there is no place any more, and whose connections end now; {0, 0}: none.
 * CNI_ERROR_KERNEL_REFUSED. */
int replacement_take(const struct objects *objects, const struct portmap_key *key,
		     const struct portmap *portmap, struct owner *lost, struct cni_error *err);

/* Gives every port that the owner has taken over, and whose former owner lives, back to that one:
 * before the owner's slot dies, so that the port always leads somewhere. CNI_ERROR_KERNEL_REFUSED.
 */
int replacements_give_back(const struct objects *objects, struct owner leaving,
			   struct cni_error *err);
