/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* host_addresses.c - the map of what is local to routing. */
#include "datapath/records/host_addresses.h"

#include <bpf/bpf.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cleanup.h"
#include "lib/digest.h"
#include "datapath/load/lock.h"
#include "datapath/load/maps.h"

/* The entry for no address holds a digest of all others. To compare it instead of reading the whole
 * map makes an ADD a tenth shorter. */
static const struct host_address_key no_address;

struct wanted {
	struct host_address_key key;
	struct host_address value;
	bool is_there;
};

struct comparison {
	const struct objects *objects;
	struct wanted *wanted; /* sorted by key */
	size_t count;
	uint64_t digest;
};

static int compare_keys(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct host_address_key));
}

/* With a longer prefix one interface's last address may be another's own. */
static bool is_own(const struct address_list *addresses, const uint8_t address[CNI_ADDRESS_SIZE])
{
	for (size_t i = 0; i < addresses->address_count; i++)
		if (!addresses->addresses[i].is_broadcast &&
		    !memcmp(addresses->addresses[i].address, address, CNI_ADDRESS_SIZE))
			return true;
	return false;
}

/* A broadcast address is kept as an excluded one. */
static void collect(struct comparison *comparison, const struct address_list *addresses,
		    const bool *excluded)
{
	for (size_t i = 0; i < addresses->address_count; i++) {
		const struct local_address *address = &addresses->addresses[i];
		struct wanted *wanted = &comparison->wanted[comparison->count];

		if (address->is_broadcast && is_own(addresses, address->address))
			continue;
		memcpy(wanted->key.address, address->address, CNI_ADDRESS_SIZE);
		wanted->value.ifindex = addresses->interfaces[address->interface].ifindex;
		wanted->value.excluded = address->is_broadcast || excluded[address->interface];
		comparison->count++;
	}
}

/* Of an address that is there twice one stays, which is excluded where either is. */
static void sort(struct comparison *comparison)
{
	struct wanted *wanted = comparison->wanted;
	size_t kept = 0;

	qsort(wanted, comparison->count, sizeof(*wanted), compare_keys);
	for (size_t i = 0; i < comparison->count; i++) {
		if (!kept || compare_keys(&wanted[kept - 1], &wanted[i]))
			wanted[kept++] = wanted[i];
		else
			wanted[kept - 1].value.excluded |= wanted[i].value.excluded;
	}
	comparison->count = kept;
}

static void digest(struct comparison *comparison)
{
	comparison->digest = DIGEST_OF_NOTHING;
	for (size_t i = 0; i < comparison->count; i++) {
		const struct wanted *wanted = &comparison->wanted[i];

		comparison->digest =
			digest_add(comparison->digest, &wanted->key, sizeof(wanted->key));
		comparison->digest = digest_add(comparison->digest, &wanted->value.excluded,
						sizeof(wanted->value.excluded));
	}
}

static int compare_with(struct comparison *comparison, const struct address_list *addresses,
			const bool *excluded, struct cni_error *err)
{
	/* One more, so that none is no special case. */
	comparison->wanted = calloc(addresses->address_count + 1, sizeof(*comparison->wanted));
	if (!excluded || !comparison->wanted)
		return cni_error_no_memory(err);
	collect(comparison, addresses, excluded);
	sort(comparison);
	digest(comparison);
	return 0;
}

static bool is_settled(const struct comparison *comparison)
{
	struct host_address all;

	return !bpf_map_lookup_elem(comparison->objects->maps[MAP_HOST_ADDRESSES], &no_address,
				    &all) &&
	       all.digest == comparison->digest;
}

static enum walk compare_entry(const void *key, const void *value, void *context,
			       struct cni_error *err)
{
	struct comparison *comparison = context;
	struct wanted *found = bsearch(key, comparison->wanted, comparison->count,
				       sizeof(*comparison->wanted), compare_keys);

	if (!found)
		return map_delete(comparison->objects, MAP_HOST_ADDRESSES, key, err) ? WALK_FAILED
										     : WALK_ON;
	found->is_there = ((const struct host_address *)value)->excluded == found->value.excluded;
	return WALK_ON;
}

/* While the map is being written it has no digest. */
static int update(struct comparison *comparison, struct cni_error *err)
{
	const struct objects *objects = comparison->objects;
	struct host_address all = {.digest = comparison->digest};

	if (is_settled(comparison))
		return 0;
	if (map_delete(objects, MAP_HOST_ADDRESSES, &no_address, err) ||
	    map_walk(objects, MAP_HOST_ADDRESSES, compare_entry, comparison, err))
		return -1;
	for (size_t i = 0; i < comparison->count; i++)
		if (!comparison->wanted[i].is_there &&
		    map_write(objects, MAP_HOST_ADDRESSES, &comparison->wanted[i].key,
			      &comparison->wanted[i].value, err))
			return -1;
	return map_write(objects, MAP_HOST_ADDRESSES, &no_address, &all, err);
}

bool *host_addresses_read_excluded(const struct objects *objects,
				   const struct address_list *addresses)
{
	bool *excluded = calloc(addresses->count + 1, sizeof(*excluded));
	struct interface known;

	for (size_t i = 0; excluded && i < addresses->count; i++)
		excluded[i] = interface_read(objects, addresses->interfaces[i].ifindex, &known) &&
			      known.addresses_excluded;
	return excluded;
}

/* The addresses are read once more: those that were read before the lock may be older than
 * what another process has written meanwhile. */
static int update_locked(const struct objects *objects, struct nl_sock *socket,
			 struct cni_error *err)
{
	struct comparison comparison = {.objects = objects};
	cleanup_lock int lock = lock_take(err);
	cleanup_free bool *excluded = NULL;
	struct address_list now = {0};
	int result;

	if (lock < 0 || address_list_read(&now, socket, err))
		return -1;
	excluded = host_addresses_read_excluded(objects, &now);
	result = compare_with(&comparison, &now, excluded, err);
	if (!result)
		result = update(&comparison, err);
	free(comparison.wanted);
	address_list_release(&now);
	return result;
}

int host_addresses_refresh(const struct objects *objects, struct nl_sock *socket,
			   const struct address_list *addresses, const bool *excluded,
			   struct cni_error *err)
{
	struct comparison comparison = {.objects = objects};
	int result = compare_with(&comparison, addresses, excluded, err);
	bool settled = !result && is_settled(&comparison);

	free(comparison.wanted);
	return result || settled ? result : update_locked(objects, socket, err);
}
