/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* host_addresses.c - the map of what is local to routing. */
#include "datapath/records/host_addresses.h"

#include <stdlib.h>
#include <string.h>

#include "lib/cleanup.h"
#include "lib/digest.h"
#include "lib/memory.h"
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

static void compare_with(struct comparison *comparison, const struct address_list *addresses,
			 const bool *excluded)
{
	struct wanted *wanted = or_exit(calloc(addresses->address_count + 1, sizeof(*wanted)));
	size_t kept = 0;

	comparison->wanted = wanted;
	for (size_t i = 0; i < addresses->address_count; i++) {
		const struct local_address *address = &addresses->addresses[i];
		struct wanted *next = &wanted[comparison->count];

		if (address->is_broadcast && is_own(addresses, address->address))
			continue;
		memcpy(next->key.address, address->address, CNI_ADDRESS_SIZE);
		next->value.ifindex = addresses->interfaces[address->interface].ifindex;
		/* A broadcast address is kept as an excluded one. */
		next->value.excluded = address->is_broadcast || excluded[address->interface];
		comparison->count++;
	}
	qsort(wanted, comparison->count, sizeof(*wanted), compare_keys);
	/* Of an address that is there twice one stays, which is excluded where either is. */
	for (size_t i = 0; i < comparison->count; i++) {
		if (!kept || compare_keys(&wanted[kept - 1], &wanted[i]))
			wanted[kept++] = wanted[i];
		else
			wanted[kept - 1].value.excluded |= wanted[i].value.excluded;
	}
	comparison->count = kept;
	comparison->digest = DIGEST_OF_NOTHING;
	for (size_t i = 0; i < kept; i++) {
		comparison->digest =
			digest_add(comparison->digest, &wanted[i].key, sizeof(wanted[i].key));
		comparison->digest = digest_add(comparison->digest, &wanted[i].value.excluded,
						sizeof(wanted[i].value.excluded));
	}
}

static bool is_settled(const struct comparison *comparison)
{
	struct host_address all;

	return map_read(comparison->objects, MAP_HOST_ADDRESSES, &no_address, &all) &&
	       all.digest == comparison->digest;
}

/* Deletes what the host does not have any more, and notes what is there already. */
static int compare_entries(struct comparison *comparison, struct cni_error *err)
{
	cleanup_walk struct map_walk walk = {.objects = comparison->objects,
					     .map = MAP_HOST_ADDRESSES};

	while (map_next(&walk, err)) {
		const struct host_address *value = walk.value;
		struct wanted *found = bsearch(walk.key, comparison->wanted, comparison->count,
					       sizeof(*comparison->wanted), compare_keys);

		if (found)
			found->is_there = value->excluded == found->value.excluded;
		else if (map_delete(comparison->objects, MAP_HOST_ADDRESSES, walk.key, err))
			return -1;
	}
	return walk.failed ? -1 : 0;
}

bool host_addresses_are_written(const struct objects *objects, const struct address_list *addresses,
				const bool *excluded)
{
	struct comparison comparison = {.objects = objects};

	compare_with(&comparison, addresses, excluded);
	free(comparison.wanted);
	return is_settled(&comparison);
}

/* While the map is being written it has no digest. */
int host_addresses_write(const struct objects *objects, const struct address_list *addresses,
			 const bool *excluded, struct cni_error *err)
{
	struct comparison comparison = {.objects = objects};
	cleanup_free struct wanted *wanted = NULL;
	struct host_address all = {0};

	compare_with(&comparison, addresses, excluded);
	wanted = comparison.wanted;
	if (is_settled(&comparison))
		return 0;
	if (map_delete(objects, MAP_HOST_ADDRESSES, &no_address, err) ||
	    compare_entries(&comparison, err))
		return -1;
	for (size_t i = 0; i < comparison.count; i++)
		if (!wanted[i].is_there &&
		    map_write(objects, MAP_HOST_ADDRESSES, &wanted[i].key, &wanted[i].value, err))
			return -1;
	all.digest = comparison.digest;
	return map_write(objects, MAP_HOST_ADDRESSES, &no_address, &all, err);
}
