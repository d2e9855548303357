/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * containers.h - a container that is on several networks: its addresses on all of them, and ports
 * that more than one of its attachments has asked for.
 *
 * And one that takes ports over from a container of the same workload, which still lives: engines
 * set the new one's network up before they take the old one's down. An entry of portmaps has them
 * all (struct portmap_succession). Call all functions with the lock.
 */
#pragma once

#include "datapath/load/maps.h"
#include "datapath/records/attachments.h"

/* Adds the attachment's addresses to those of its container; those beyond MAX_HOMES are left out,
 * but of each of MAX_HOMES attachments there is one. Before its slot, of that number, goes live.
 * CNI_ERROR_KERNEL_REFUSED. */
int container_add_homes(const struct objects *objects, const struct attachment_claims *claims,
			const struct slot *slot, uint32_t number, struct cni_error *err);

/* Takes an attachment away, whose slot is given: its ports go to those attachments of the
 * container that wait for them, in one step each, so that no client is refused. To repeat it does
 * no harm. CNI_ERROR_KERNEL_REFUSED. */
int container_leave(const struct objects *objects, const struct slot *slot, struct owner owner,
		    struct cni_error *err);

/* Deletes the endpoint of an attachment that leaves; where IPAM has given the address twice, or the
 * interface is in two networks, another one that lives gets it. CNI_ERROR_KERNEL_REFUSED. */
int container_return_address(const struct objects *objects, const struct endpoint_key *key,
			     const struct endpoint *endpoint, struct cni_error *err);

/* Finds another attachment of the slot's container that lives and has the same interface. */
bool container_find_other(const struct objects *objects, const struct slot *slot, uint32_t number,
			  struct owner *other);

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
