/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* owner.h - which attachment something belongs to, and whether that still exists. */
#pragma once

#include "maps.h"

/* Returns NULL where the owner has gone. */
INLINE const struct slot *owner_slot(const struct owner *owner)
{
	__u32 number = owner->slot;
	const struct slot *slot = bpf_map_lookup_elem(&slots, &number);

	return slot && slot->live && slot->generation == owner->generation ? slot : NULL;
}

/* Does not look at the veth: slot_has_veth(). */
INLINE bool owner_live(const struct owner *owner)
{
	return owner_slot(owner);
}

/* Does the same by a slot's number and the id of one of its owner's connections. */
INLINE bool owner_of_id_live(__u32 number, __u32 id)
{
	const struct slot *slot = bpf_map_lookup_elem(&slots, &number);

	return !number || (slot && slot->live && (__u16)slot->generation == id >> 16);
}

/* Returns whether the slot's owner still has its veth, which it outlives without DEL. Checked when
 * a connection begins, and once a second while it is used. */
GLOBAL_FUNCTION bool slot_has_veth(__u32 slot)
{
	struct meta *settings;

	if (bpf_map_lookup_elem(&veths, &slot))
		return true;
	settings = SINGLE(meta);
	if (!settings->owner_gone)
		settings->owner_gone = 1;
	return false;
}

/* Returns whether both are live, and of the same container: on two networks it has two. */
GLOBAL_FUNCTION bool owners_are_of_one_container(const struct owner *a, const struct owner *b)
{
	const struct slot *one, *other;

	if (!a || !b)
		return false;
	one = owner_slot(a);
	other = owner_slot(b);
	return one && other && one->container == other->container;
}

/* Returns where the owner's packets enter the IP stack (struct slot); 0: it has gone. */
INLINE __u32 owner_gateway(const struct owner *owner)
{
	const struct slot *slot = owner_slot(owner);

	return slot ? slot->gateway : 0;
}

INLINE bool owner_equal(const struct owner *a, const struct owner *b)
{
	return a->slot == b->slot && a->generation == b->generation;
}
