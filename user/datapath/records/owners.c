/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* owners.c - slots, and which attachment an owner {slot, generation} is. */
#include "datapath/records/owners.h"

#include <string.h>

#include "net/link.h"
#include "datapath/attach/hooks.h"

bool owner_read(const struct objects *objects, struct owner owner, struct slot *slot)
{
	return owner.slot && slot_read(objects, owner.slot, slot) &&
	       slot->generation == owner.generation;
}

void slot_get_key(const struct slot *slot, struct attachment_key *key)
{
	memset(key, 0, sizeof(*key));
	memcpy(key->name, slot->attachment, strnlen(slot->attachment, sizeof(key->name) - 1));
}

bool slot_read_record(const struct objects *objects, uint32_t number, const struct slot *slot,
		      struct attachment *record)
{
	struct attachment_key key;

	if (!slot->generation || !slot->attachment[0])
		return false;
	slot_get_key(slot, &key);
	return attachment_read(objects, &key, record) &&
	       owner_is(record->owner, (struct owner){number, slot->generation});
}

bool attachment_has_veth(const struct objects *objects, struct netlink *socket,
			 const struct attachment *record)
{
	struct cni_error ignored = {0};
	struct interface interface;
	struct link link;

	if (link_get(socket, record->ifindex, NULL, &link, &ignored)) {
		cni_error_release(&ignored);
		return true;
	}
	if (!link.ifindex)
		return false;
	return !memcmp(link.mac, record->host_mac, LINK_MAC_SIZE) ||
	       (interface_read(objects, record->ifindex, &interface) &&
		owner_is(interface.owner, record->owner) &&
		hook_has_program(record->ifindex, HOOK_INGRESS, PROGRAM_FROM_CONTAINER));
}

bool owner_is_live_with_veth(const struct objects *objects, struct netlink *socket,
			     struct owner owner, struct slot *slot)
{
	struct attachment record;

	if (!owner_read(objects, owner, slot)) {
		memset(slot, 0, sizeof(*slot));
		return false;
	}
	/* Under the lock no ADD or DEL is under way: one that is not live was killed. */
	return slot->live && slot_read_record(objects, owner.slot, slot, &record) &&
	       record.state == ATTACHMENT_READY && attachment_has_veth(objects, socket, &record);
}

int owner_allocate(const struct objects *objects, struct meta *meta, struct owner *owner,
		   struct cni_error *err)
{
	struct attachment record;
	struct slot slot;

	owner->slot = 0;
	for (uint32_t tried = 1, hint = meta->next_slot; tried < MAX_SLOTS && !owner->slot;
	     tried++, hint++) {
		if (hint == 0 || hint >= MAX_SLOTS)
			hint = 1;
		if (slot_read(objects, hint, &slot) &&
		    !slot_read_record(objects, hint, &slot, &record))
			owner->slot = hint;
	}
	if (!owner->slot)
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "there are %d attachments already, as many as bpf-portmap can "
				     "hold; GC removes those whose containers are gone",
				     MAX_SLOTS - 1);
	meta->generation++;
	/* Zero means no owner. */
	meta->generation += meta->generation == 0;
	meta->next_slot = owner->slot + 1;
	owner->generation = meta->generation;
	return 0;
}

int owner_set_gateway(const struct objects *objects, struct owner owner, uint32_t ifindex,
		      const uint8_t mac[6], struct cni_error *err)
{
	struct slot slot;

	if (!owner_read(objects, owner, &slot))
		return 0;
	slot.gateway = ifindex;
	memcpy(slot.gateway_mac, mac, sizeof(slot.gateway_mac));
	return slot_write(objects, owner.slot, &slot, err);
}
