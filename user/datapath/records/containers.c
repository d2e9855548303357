/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* containers.c - a container that is on several networks, and one that replaces another. */
#include "datapath/records/containers.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "datapath/records/attachments.h"

/* Returns whether both say the same, and are whole: neither cut off nor with a letter replaced. */
static bool is_same_name(const char *a, const char *b, size_t size)
{
	size_t length = strnlen(a, size);

	return length < size - 1 && !memchr(a, '?', length) && !strncmp(a, b, size);
}

bool workload_is_same(const struct workload *a, const struct workload *b)
{
	return a->kind != WORKLOAD_NONE && a->kind == b->kind && *a->name &&
	       is_same_name(a->namespace, b->namespace, WORKLOAD_NAMESPACE_SIZE) &&
	       is_same_name(a->name, b->name, WORKLOAD_NAME_SIZE);
}

bool workload_has_slot(const struct objects *objects, const struct workload *workload,
		       uint32_t number, const struct slot *slot)
{
	struct attachment record;

	return slot_read_record(objects, number, slot, &record) &&
	       workload_is_same(workload, &record.workload);
}

struct portmap *succession_find(struct portmap_succession *entry, struct owner owner)
{
	struct portmap *const all[] = {&entry->now, &entry->before, &entry->earlier};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (owner_is(all[i]->owner, owner))
			return all[i];
	return NULL;
}

void succession_remove(struct portmap_succession *entry, struct owner owner)
{
	const struct portmap *leaving = succession_find(entry, owner);

	if (leaving == &entry->now)
		entry->now = entry->before;
	if (leaving == &entry->now || leaving == &entry->before)
		entry->before = entry->earlier;
	if (leaving)
		entry->earlier = (struct portmap){0};
}

/* Of those that were replaced, only the living stay. */
static void forget_dead(const struct objects *objects, struct portmap_succession *entry)
{
	struct slot slot;

	if (!owner_is_live_with_veth(objects, entry->earlier.owner, &slot))
		entry->earlier = (struct portmap){0};
	if (!owner_is_live_with_veth(objects, entry->before.owner, &slot))
		succession_remove(entry, entry->before.owner);
}

int replacement_take(const struct objects *objects, const struct portmap_key *key,
		     const struct portmap *portmap, struct owner *lost, struct cni_error *err)
{
	struct portmap_succession entry;

	*lost = (struct owner){0};
	if (!portmap_succession_read(objects, key, &entry))
		return map_refuse_read(MAP_PORTMAPS, err);
	forget_dead(objects, &entry);
	*lost = entry.earlier.owner;
	entry.earlier = entry.before;
	entry.before = entry.now;
	entry.now = *portmap;
	return map_write(objects, MAP_PORTMAPS, key, &entry, err);
}

int replacements_give_back(const struct objects *objects, struct owner leaving,
			   struct cni_error *err)
{
	cleanup_walk struct map_walk walk = {.objects = objects, .map = MAP_PORTMAPS};

	while (map_next(&walk, err)) {
		const struct portmap_key *key = walk.key;
		struct portmap_succession entry = *(const struct portmap_succession *)walk.value;

		if (key->waiter || !owner_is(entry.now.owner, leaving))
			continue;
		forget_dead(objects, &entry);
		/* Who has the port at any address has it here, too, without this entry. */
		if (!entry.before.owner.slot || entry.before.of_any_address)
			continue;
		succession_remove(&entry, leaving);
		if (map_write(objects, MAP_PORTMAPS, key, &entry, err))
			return -1;
	}
	return walk.failed ? -1 : 0;
}

/* Reads the addresses that the container has by its other attachments. Returns how many. */
static int read_others(const struct objects *objects, uint64_t container, uint32_t own_slot,
		       struct container_homes *others, struct cni_error *err)
{
	struct container_homes found;
	struct slot slot;
	int count = 0;

	memset(others, 0, sizeof(*others));
	if (!map_read(objects, MAP_CONTAINERS, &container, &found))
		return errno == ENOENT ? 0 : map_refuse_read(MAP_CONTAINERS, err);
	for (int i = 0; i < MAX_HOMES; i++) {
		const struct home *home = &found.homes[i];

		if (home->slot && home->slot != own_slot && slot_read(objects, home->slot, &slot) &&
		    slot.live && slot.container == container)
			others->homes[count++] = *home;
	}
	return count;
}

static int note_several_networks(const struct objects *objects, struct cni_error *err)
{
	struct meta meta;

	if (!meta_read(objects, &meta))
		return map_refuse_read(MAP_META, err);
	if (meta.several_networks)
		return 0;
	meta.several_networks = 1;
	return meta_write(objects, &meta, err);
}

/* Another attachment's home that is not its only one; the last one. NULL: each has one. */
static struct home *find_spare(struct container_homes *all)
{
	for (int i = MAX_HOMES - 1; i > 0; i--)
		for (int j = 0; j < i; j++)
			if (all->homes[j].slot == all->homes[i].slot)
				return &all->homes[i];
	return NULL;
}

/* Where there are more addresses than room each attachment has one home at least: without any,
 * nobody would know of it when the others leave, and their ports would not be handed over. */
static void add_own(struct container_homes *all, int count, const struct attachment_claims *claims,
		    uint32_t number)
{
	for (size_t i = 0; i < claims->endpoint_count; i++) {
		struct home *home = NULL;

		if (count < MAX_HOMES)
			home = &all->homes[count++];
		else if (i == 0)
			home = find_spare(all);
		if (!home)
			break;
		memcpy(home->address, claims->endpoints[i].key.address, sizeof(home->address));
		home->slot = number;
		home->prefix_length = claims->endpoints[i].endpoint.prefix_length;
	}
}

int container_add_homes(const struct objects *objects, const struct attachment_claims *claims,
			const struct slot *slot, uint32_t number, struct cni_error *err)
{
	struct container_homes all = {0};
	int count;

	/* Nearly always it is on no other network. */
	add_own(&all, 0, claims, number);
	if (!bpf_map_update_elem(map_fd(objects, MAP_CONTAINERS), &slot->container, &all,
				 BPF_NOEXIST))
		return 0;
	count = read_others(objects, slot->container, number, &all, err);
	if (count < 0 || (count && note_several_networks(objects, err)))
		return -1;
	add_own(&all, count, claims, number);
	return map_write(objects, MAP_CONTAINERS, &slot->container, &all, err);
}

/* Whether another attachment of the container that lives waits for a port by this entry. */
static bool is_heirs(const struct objects *objects, const struct portmap_key *key,
		     const struct portmap *waiting, struct owner leaving, uint64_t container)
{
	struct slot heir;

	return key->waiter && !owner_is(waiting->owner, leaving) &&
	       owner_read(objects, waiting->owner, &heir) && heir.live &&
	       heir.container == container;
}

/* What replaces an older container gives its ports back when it goes, whichever of its networks has
 * them by then. */
static int note_replaces(const struct objects *objects, struct owner heir, struct cni_error *err)
{
	struct attachment record;
	struct attachment_key key;
	struct slot slot;

	if (!owner_read(objects, heir, &slot) ||
	    !slot_read_record(objects, heir.slot, &slot, &record) || record.replaces)
		return 0;
	record.replaces = true;
	slot_get_key(&slot, &key);
	return attachment_write(objects, &key, &record, err);
}

/* The waiting entries go last: what was killed in between is done again. */
static int hand_over_ports(const struct objects *objects, const struct slot *slot,
			   struct owner leaving, struct cni_error *err)
{
	cleanup_walk struct map_walk walk = {.objects = objects, .map = MAP_PORTMAPS};

	while (map_next(&walk, err)) {
		const struct portmap *waiting = walk.value;
		struct portmap_key port = *(const struct portmap_key *)walk.key;
		struct portmap_succession entry;
		struct portmap *mapping;

		if (!is_heirs(objects, &port, waiting, leaving, slot->container))
			continue;
		port.waiter = 0;
		if (!portmap_succession_read(objects, &port, &entry))
			continue;
		mapping = succession_find(&entry, leaving);
		if (mapping == &entry.now && entry.before.owner.slot &&
		    note_replaces(objects, waiting->owner, err))
			return -1;
		if (mapping) {
			*mapping = *waiting;
			if (map_write(objects, MAP_PORTMAPS, &port, &entry, err))
				return -1;
		} else if (!succession_find(&entry, waiting->owner)) {
			continue;
		}
		if (map_delete(objects, MAP_PORTMAPS, walk.key, err))
			return -1;
	}
	return walk.failed ? -1 : 0;
}

int container_leave(const struct objects *objects, const struct slot *slot, struct owner owner,
		    struct cni_error *err)
{
	struct container_homes others;
	int count = read_others(objects, slot->container, owner.slot, &others, err);

	if (count < 0)
		return -1;
	if (!count)
		return map_delete(objects, MAP_CONTAINERS, &slot->container, err);
	if (hand_over_ports(objects, slot, owner, err))
		return -1;
	return map_write(objects, MAP_CONTAINERS, &slot->container, &others, err);
}

/* Finds who else has the address: the last one becomes the endpoint's owner. Returns how many. */
static int find_heirs(const struct objects *objects, const struct endpoint_key *key,
		      uint32_t leaving, struct endpoint *endpoint, struct cni_error *err)
{
	cleanup_walk struct map_walk walk = {.objects = objects, .map = MAP_CONTAINERS};
	struct slot slot;
	int count = 0;

	while (map_next(&walk, err)) {
		const struct container_homes *container = walk.value;

		for (int i = 0; i < MAX_HOMES; i++) {
			const struct home *home = &container->homes[i];

			if (!home->slot || home->slot == leaving ||
			    memcmp(home->address, key->address, sizeof(home->address)) ||
			    !slot_read(objects, home->slot, &slot) || !slot.live)
				continue;
			endpoint->owner = (struct owner){home->slot, slot.generation};
			endpoint->prefix_length = home->prefix_length;
			count++;
		}
	}
	return walk.failed ? -1 : count;
}

int container_return_address(const struct objects *objects, const struct endpoint_key *key,
			     const struct endpoint *endpoint, struct cni_error *err)
{
	struct endpoint returned = *endpoint;
	int heirs = 0;

	if (endpoint->shared)
		heirs = find_heirs(objects, key, endpoint->owner.slot, &returned, err);
	if (heirs < 0)
		return -1;
	if (!heirs)
		return map_delete(objects, MAP_ENDPOINTS, key, err);
	returned.shared = heirs > 1;
	return endpoint_write(objects, key, &returned, err);
}

bool container_find_other(const struct objects *objects, const struct slot *slot, uint32_t number,
			  struct owner *other)
{
	struct container_homes found;
	struct slot home;

	if (!map_read(objects, MAP_CONTAINERS, &slot->container, &found))
		return false;
	for (int i = 0; i < MAX_HOMES; i++) {
		other->slot = found.homes[i].slot;
		if (!other->slot || other->slot == number ||
		    !slot_read(objects, other->slot, &home) || !home.live ||
		    home.ifindex != slot->ifindex)
			continue;
		other->generation = home.generation;
		return true;
	}
	return false;
}
