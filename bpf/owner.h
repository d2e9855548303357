/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* owner.h - whose it is, and whether that one is still there. */
#ifndef BPF_PORTMAP_OWNER_H
#define BPF_PORTMAP_OWNER_H

#include "maps.h"

/* NULL: that one is gone. */
INLINE const struct slot *owner_slot(const struct owner *owner)
{
	__u32 number = owner->slot;
	const struct slot *slot = bpf_map_lookup_elem(&slots, &number);

	return slot && slot->live && slot->generation == owner->generation ? slot : NULL;
}

INLINE bool owner_live(const struct owner *owner)
{
	return owner_slot(owner);
}

/* The same by the number of a slot, and the id of a connection that its owner has. */
INLINE bool owner_of_id_live(__u32 number, __u32 id)
{
	const struct slot *slot = bpf_map_lookup_elem(&slots, &number);

	return !number || (slot && slot->live && (__u16)slot->generation == id >> 16);
}

/* Whether the owner's veth is still there: without DEL an owner stays live when it is deleted.
 * Asked when a connection begins, and once a second while it goes on. */
GLOBAL_FUNCTION bool owner_has_veth(__u32 slot)
{
	struct meta *settings;

	if (bpf_map_lookup_elem(&veths, &slot))
		return true;
	settings = SINGLE(meta);
	if (settings && !settings->owner_gone)
		settings->owner_gone = 1;
	return false;
}

INLINE bool owner_equal(const struct owner *a, const struct owner *b)
{
	return a->slot == b->slot && a->generation == b->generation;
}

#endif
