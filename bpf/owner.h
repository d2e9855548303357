/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* owner.h - whose it is, and whether that one is still there. */
#ifndef BPF_PORTMAP_OWNER_H
#define BPF_PORTMAP_OWNER_H

#include "maps.h"

/* NULL: that one is gone. */
static __always_inline const struct slot *owner_slot(const struct owner *owner)
{
	__u32 number = owner->slot;
	const struct slot *slot = bpf_map_lookup_elem(&slots, &number);

	return slot && slot->live && slot->generation == owner->generation ? slot : NULL;
}

static __always_inline bool owner_live(const struct owner *owner)
{
	return owner_slot(owner);
}

/* Whether the owner's veth is still there: without DEL an owner stays live when it is deleted.
 * Asked when a flow begins, and once a second while it goes on. */
VERIFIED_ONCE bool owner_has_veth(__u32 slot)
{
	struct meta *settings;
	__u32 only = 0;

	if (bpf_map_lookup_elem(&veths, &slot))
		return true;
	settings = bpf_map_lookup_elem(&meta, &only);
	if (settings && !settings->owner_gone)
		settings->owner_gone = 1;
	return false;
}

static __always_inline bool owner_equal(const struct owner *a, const struct owner *b)
{
	return a->slot == b->slot && a->generation == b->generation;
}

#endif
