/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* host_addresses.c - the map of what is local to routing. */
#include "datapath/records/host_addresses.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cleanup.h"
#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "datapath/load/bpf_error.h"

struct wanted {
	struct host_address_key key;
	struct host_address value;
	bool is_there;
};

struct comparison {
	int map;
	struct wanted *wanted; /* sorted by key */
	size_t count;
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

/* A broadcast address stands here as an excluded one. */
static size_t collect(const struct address_list *addresses, const bool *excluded,
		      struct wanted *wanted)
{
	size_t count = 0;

	for (size_t i = 0; i < addresses->address_count; i++) {
		const struct local_address *address = &addresses->addresses[i];

		if (address->is_broadcast && is_own(addresses, address->address))
			continue;
		memcpy(wanted[count].key.address, address->address, CNI_ADDRESS_SIZE);
		wanted[count].value.ifindex = addresses->interfaces[address->interface].ifindex;
		wanted[count++].value.excluded =
			address->is_broadcast || excluded[address->interface];
	}
	return count;
}

/* Sorts, and leaves out what is there twice: where one of them is excluded, it is. */
static size_t sort(struct wanted *wanted, size_t count)
{
	size_t kept = 0;

	qsort(wanted, count, sizeof(*wanted), compare_keys);
	for (size_t i = 0; i < count; i++) {
		if (!kept || compare_keys(&wanted[kept - 1], &wanted[i]))
			wanted[kept++] = wanted[i];
		else
			wanted[kept - 1].value.excluded |= wanted[i].value.excluded;
	}
	return kept;
}

static bool compare_entry(const void *key, const void *value, void *context)
{
	struct comparison *comparison = context;
	struct wanted *found = bsearch(key, comparison->wanted, comparison->count,
				       sizeof(*comparison->wanted), compare_keys);

	if (found)
		found->is_there =
			((const struct host_address *)value)->excluded == found->value.excluded;
	else
		bpf_map_delete_elem(comparison->map, key);
	return true;
}

static int write_entry(const struct comparison *comparison, const struct host_address_key *key,
		       const struct host_address *value, struct cni_error *err)
{
	if (!bpf_map_update_elem(comparison->map, key, value, BPF_ANY))
		return 0;
	return bpf_error_set(err, errno, "cannot write to the map host_addresses");
}

static int synchronize(const struct comparison *comparison, struct cni_error *err)
{
	if (maps_walk(comparison->map, sizeof(struct host_address_key), sizeof(struct host_address),
		      compare_entry, (void *)comparison))
		return bpf_error_set(err, errno, "cannot read the map host_addresses");
	for (size_t i = 0; i < comparison->count; i++)
		if (!comparison->wanted[i].is_there &&
		    write_entry(comparison, &comparison->wanted[i].key,
				&comparison->wanted[i].value, err))
			return -1;
	return 0;
}

#define FNV_PRIME 0x100000001b3

/* FNV-1a, 64 bits. */
static uint64_t digest_of(const struct comparison *comparison)
{
	uint64_t digest = 0xcbf29ce484222325;

	for (size_t i = 0; i < comparison->count; i++) {
		const struct wanted *wanted = &comparison->wanted[i];

		for (size_t byte = 0; byte < CNI_ADDRESS_SIZE; byte++)
			digest = (digest ^ wanted->key.address[byte]) * FNV_PRIME;
		digest = (digest ^ wanted->value.excluded) * FNV_PRIME;
	}
	return digest;
}

static bool has_digest(const struct comparison *comparison, uint64_t digest)
{
	const struct host_address_key no_address = {0};
	struct host_address all;

	return !bpf_map_lookup_elem(comparison->map, &no_address, &all) && all.digest == digest;
}

static int compare_with(struct comparison *comparison, const struct address_list *addresses,
			const bool *excluded, struct cni_error *err)
{
	/* One more, so that none is no special case. */
	comparison->wanted = calloc(addresses->address_count + 1, sizeof(*comparison->wanted));
	if (!excluded || !comparison->wanted)
		return cni_error_no_memory(err);
	comparison->count =
		sort(comparison->wanted, collect(addresses, excluded, comparison->wanted));
	return 0;
}

/* Reading a map costs as many steps as it may have entries, so it is read only where
 * something has changed. While it is being written it has no digest. */
static int update(const struct comparison *comparison, struct cni_error *err)
{
	const struct host_address_key no_address = {0};
	struct host_address all = {.digest = digest_of(comparison)};

	if (has_digest(comparison, all.digest))
		return 0;
	bpf_map_delete_elem(comparison->map, &no_address);
	if (synchronize(comparison, err))
		return -1;
	return write_entry(comparison, &no_address, &all, err);
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
 * what somebody else has written meanwhile. */
static int update_locked(const struct objects *objects, struct nl_sock *socket,
			 struct cni_error *err)
{
	struct comparison comparison = {.map = objects->maps[MAP_HOST_ADDRESSES]};
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
	struct comparison comparison = {.map = objects->maps[MAP_HOST_ADDRESSES]};
	int result = compare_with(&comparison, addresses, excluded, err);
	bool settled = !result && has_digest(&comparison, digest_of(&comparison));

	free(comparison.wanted);
	return result || settled ? result : update_locked(objects, socket, err);
}
