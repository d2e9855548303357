/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * owners.h - slots, and which attachment an owner {slot, generation} is.
 *
 * A slot is free if the attachment that it names has no record that points back. So
 * what a killed run left is free without being cleaned up.
 */
#ifndef DATAPATH_RECORDS_OWNERS_H
#define DATAPATH_RECORDS_OWNERS_H

#include <stddef.h>

#include "datapath/load/maps.h"
#include "datapath/load/objects.h"
#include "lib/error.h"

struct netlink;

/* Reads the owner's slot. Returns false where nobody is that owner any more. */
bool owner_read(const struct objects *objects, struct owner owner, struct slot *slot);

void slot_get_key(const struct slot *slot, struct attachment_key *key);

/* Reads the record of the attachment that a slot names. Returns false where there is none that
 * points back. */
bool slot_read_record(const struct objects *objects, uint32_t number, const struct slot *slot,
		      struct attachment *record);

/* Returns whether the veth of an attachment is there. Its ifindex may have been given to another
 * interface, so it is recognised by its MAC, or, as udev and administrators change those, by its
 * entry in interfaces and our program on it. True where rtnetlink cannot say: nothing is taken from
 * an attachment that may be alive. */
bool attachment_has_veth(const struct objects *objects, struct netlink *socket,
			 const struct attachment *record);

/* Returns whether the owner is an attachment that was completed, is not deleted and whose veth is
 * there. Fills the slot where it has the generation, else with zeros. Call it with the lock. */
bool owner_is_live_with_veth(const struct objects *objects, struct netlink *socket,
			     struct owner owner, struct slot *slot);

/* Gives out a new owner: the next generation, in a free slot. Moves the counter in meta on, which
 * the caller writes before anything else. Call it with the lock. CNI_ERROR_KERNEL_REFUSED. */
int owner_allocate(const struct objects *objects, struct meta *meta, struct owner *owner,
		   struct cni_error *err);

/* Writes where the container's packets enter the IP stack, as ADD does. Call it with the lock.
 * Returns 0 also where the owner does not exist any more. CNI_ERROR_KERNEL_REFUSED. */
int owner_set_gateway(const struct objects *objects, struct owner owner, uint32_t ifindex,
		      const uint8_t mac[6], struct cni_error *err);

#endif
