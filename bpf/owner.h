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

static __always_inline bool owner_equal(const struct owner *a, const struct owner *b)
{
	return a->slot == b->slot && a->generation == b->generation;
}

#endif
