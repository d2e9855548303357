/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* attachments_amend.c - changing the slot of an attachment that is live. */
#include <string.h>

#include "cni/cleanup.h"
#include "datapath/attachments.h"
#include "datapath/lock.h"
#include "datapath/maps.h"
#include "datapath/owners.h"
#include "datapath/slot_amend.h"

static int amend(const struct objects *objects, uint32_t number, const struct slot *wanted,
		 struct cni_error *err)
{
	cleanup_close int amender = slot_amender_open(objects, err);

	return amender < 0 ? -1 : slot_amend(amender, number, wanted, err);
}

/* False: it is as it should be, or not there. */
static bool is_to_amend(const struct objects *objects, const struct attachment_claims *claims,
			uint32_t *number, struct slot *slot)
{
	struct attachment record;
	struct slot before;

	if (!attachment_read(objects, &claims->key, &record) ||
	    !owner_read(objects, record.owner, slot))
		return false;
	*number = record.owner.slot;
	before = *slot;
	slot->fast_path = claims->fast_path;
	claims_find_gateway(objects, claims, slot->gateway_mac);
	return memcmp(&before, slot, sizeof(before)) != 0;
}

int attachment_amend(const struct datapath *datapath, const struct attachment_claims *claims,
		     struct cni_error *err)
{
	const struct objects *objects = &datapath->objects;
	cleanup_lock int lock = -1;
	uint32_t number;
	struct slot slot;

	if (!is_to_amend(objects, claims, &number, &slot))
		return 0;
	lock = lock_take(err);
	if (lock < 0)
		return -1;
	return is_to_amend(objects, claims, &number, &slot) ? amend(objects, number, &slot, err)
							    : 0;
}

int attachment_turn_fast_path_off(const struct datapath *datapath, struct owner owner,
				  bool *changed, struct cni_error *err)
{
	const struct objects *objects = &datapath->objects;
	cleanup_lock int lock = -1;
	struct slot slot;

	*changed = false;
	if (!owner_read(objects, owner, &slot) || slot.fast_path == FAST_PATH_OFF)
		return 0;
	lock = lock_take(err);
	if (lock < 0)
		return -1;
	if (!owner_read(objects, owner, &slot))
		return 0;
	slot.fast_path = FAST_PATH_OFF;
	*changed = true;
	return amend(objects, owner.slot, &slot, err);
}
