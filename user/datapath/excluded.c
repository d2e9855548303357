/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* excluded.c - the map of addresses that look local but are never mapped. */
#include "datapath/excluded.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cni/cleanup.h"
#include "datapath/maps.h"
#include "datapath/refusal.h"

struct wanted {
	struct excluded_key key;
	struct excluded value;
	bool is_there;
};

struct comparison {
	int map;
	struct wanted *wanted; /* sorted by key */
	size_t count;
};

static int compare_keys(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct excluded_key));
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

static size_t collect(const struct address_list *addresses, struct wanted *wanted)
{
	size_t count = 0;

	for (size_t i = 0; i < addresses->address_count; i++) {
		const struct local_address *address = &addresses->addresses[i];
		const struct addressed_interface *interface =
			&addresses->interfaces[address->interface];

		if (address->is_broadcast ? is_own(addresses, address->address)
					  : !interface->is_excluded)
			continue;
		memcpy(wanted[count].key.address, address->address, CNI_ADDRESS_SIZE);
		wanted[count++].value.ifindex = interface->ifindex;
	}
	return count;
}

/* Sorts, and leaves out what is there twice. */
static size_t sort(struct wanted *wanted, size_t count)
{
	size_t kept = 0;

	qsort(wanted, count, sizeof(*wanted), compare_keys);
	for (size_t i = 0; i < count; i++)
		if (!kept || compare_keys(&wanted[kept - 1], &wanted[i]))
			wanted[kept++] = wanted[i];
	return kept;
}

static bool compare_entry(const void *key, const void *value, void *context)
{
	struct comparison *comparison = context;
	struct wanted *found = bsearch(key, comparison->wanted, comparison->count,
				       sizeof(*comparison->wanted), compare_keys);

	if (found)
		found->is_there = true;
	else
		bpf_map_delete_elem(comparison->map, key);
	return true;
}

static int add_missing(const struct comparison *comparison, struct cni_error *err)
{
	for (size_t i = 0; i < comparison->count; i++) {
		const struct wanted *wanted = &comparison->wanted[i];

		if (!wanted->is_there &&
		    bpf_map_update_elem(comparison->map, &wanted->key, &wanted->value, BPF_ANY))
			return refusal_set(err, errno, "cannot write to the map excluded");
	}
	return 0;
}

int excluded_refresh(const struct objects *objects, const struct address_list *addresses,
		     struct cni_error *err)
{
	/* One more, so that none is no special case. */
	cleanup_free struct wanted *wanted = calloc(addresses->address_count + 1, sizeof(*wanted));
	struct comparison comparison = {objects->maps[MAP_EXCLUDED], wanted, 0};

	if (!wanted)
		return cni_error_no_memory(err);
	comparison.count = sort(wanted, collect(addresses, wanted));
	if (maps_walk(comparison.map, sizeof(struct excluded_key), sizeof(struct excluded),
		      compare_entry, &comparison))
		return refusal_set(err, errno, "cannot read the map excluded");
	return add_missing(&comparison, err);
}
