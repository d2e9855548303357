/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * owners.h - slots, and which attachment an owner {slot, generation} is.
 *
 * A slot is free if the attachment that it names has no record that points back. So
 * what a killed run left is free without being cleaned up.
 */
#ifndef DATAPATH_RECORDS_OWNERS_H
#define DATAPATH_RECORDS_OWNERS_H

#include "datapath/load/maps.h"

struct nl_sock;

/* The owner's slot. False: nobody is that owner any more. */
bool owner_read(const struct objects *objects, struct owner owner, struct slot *slot);

void slot_get_key(const struct slot *slot, struct attachment_key *key);

/* The record of the attachment that a slot names. False: there is none that points back. */
bool slot_read_record(const struct objects *objects, uint32_t number, const struct slot *slot,
		      struct attachment *record);

/* Whether it is what the attachment's slot says too. */
bool owner_is_of(const struct objects *objects, struct owner owner,
		 const struct attachment_key *key);

/* Whether the veth of an attachment is there. Its ifindex may have been given to another interface,
 * so it is recognised by its MAC, or, as udev and administrators change those, by its entry in
 * interfaces and our program on it. True where rtnetlink cannot say: nothing is taken from an
 * attachment that may be alive. */
bool owner_has_veth(const struct objects *objects, struct nl_sock *socket,
		    const struct attachment *record);

/* Whether the owner is an attachment that was completed, is not deleted and whose veth is there.
 * The slot is filled where it has the generation, else it is zero. Call it with the lock. */
bool owner_is_alive(const struct objects *objects, struct nl_sock *socket, struct owner owner,
		    struct slot *slot);

/* A new owner: the next generation, in a free slot; the counter in meta, to be written in front of
 * anything else, is moved on. Call it with the lock. CNI_ERROR_KERNEL_REFUSED. */
int owner_allocate(const struct objects *objects, struct meta *meta, struct owner *owner,
		   struct cni_error *err);

/* From this moment nothing that the owner has is valid. An owner that does not exist any more: 0.
 */
int owner_set_live(const struct objects *objects, struct owner owner, bool live,
		   struct cni_error *err);

/* Empties the slot if it is still the owner's. */
void owner_free(const struct objects *objects, struct owner owner);

#endif
