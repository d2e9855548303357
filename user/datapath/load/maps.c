/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* maps.c - typed access to the maps. */
#include "datapath/load/maps.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "datapath/load/bpf_error.h"
#include "lib/cleanup.h"
#include "lib/memory.h"

/* Most maps have few entries. For more bytes than these the C library asks the kernel for memory,
 * and gives it back. */
#define FIRST_BATCH_BYTES 32768U
#define NEXT_BATCH 1024U
#define MAX_BATCH (1U << 20)

void map_walk_end(struct map_walk *walk)
{
	free(walk->keys);
	free(walk->values);
}

static void make_room(struct map_walk *walk, uint32_t capacity)
{
	if (capacity <= walk->capacity)
		return;
	map_walk_end(walk);
	walk->capacity = capacity;
	walk->keys = or_exit(calloc(capacity, map_key_size(walk->map)));
	walk->values = or_exit(calloc(capacity, map_value_size(walk->map)));
}

static int look_up_batch(struct map_walk *walk)
{
	walk->next = 0;
	walk->count = walk->capacity;
	return bpf_map_lookup_batch(map_fd(walk->objects, walk->map),
				    walk->has_begun ? &walk->position : NULL, &walk->position,
				    walk->keys, walk->values, &walk->count, NULL);
}

static void read_batch(struct map_walk *walk, struct cni_error *err)
{
	size_t entry_size = map_key_size(walk->map) + map_value_size(walk->map);
	int result;

	make_room(walk, walk->has_begun ? NEXT_BATCH : FIRST_BATCH_BYTES / (uint32_t)entry_size);
	/* A bucket of the hash may have more entries than there is room for. */
	while ((result = look_up_batch(walk)) && errno == ENOSPC && walk->capacity < MAX_BATCH)
		make_room(walk, 2 * walk->capacity);
	walk->has_begun = true;
	walk->is_last = result;
	walk->failed = result && errno != ENOENT;
	if (!walk->failed)
		return;
	walk->count = 0;
	map_refuse_read(walk->map, err);
}

bool map_next(struct map_walk *walk, struct cni_error *err)
{
	while (walk->next == walk->count) {
		if (walk->is_last)
			return false;
		read_batch(walk, err);
	}
	walk->key = walk->keys + walk->next * map_key_size(walk->map);
	walk->value = walk->values + walk->next * map_value_size(walk->map);
	walk->next++;
	return true;
}

int map_refuse_read(enum map_number map, struct cni_error *err)
{
	return bpf_error_set(err, errno, "cannot read the map %s", map_name(map));
}

uint32_t map_capacity(const struct objects *objects, enum map_number map)
{
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info);

	return bpf_obj_get_info_by_fd(map_fd(objects, map), &info, &size) ? 0 : info.max_entries;
}

int map_refuse_write(const struct objects *objects, enum map_number map, struct cni_error *err)
{
	int saved = errno;
	uint32_t capacity = saved == E2BIG ? map_capacity(objects, map) : 0;

	if (!capacity)
		return bpf_error_set(err, saved, "cannot write to the map %s", map_name(map));
	return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
			     "the map %s is full: a host can have %u entries there", map_name(map),
			     capacity);
}

int map_write(const struct objects *objects, enum map_number map, const void *key,
	      const void *value, struct cni_error *err)
{
	if (!bpf_map_update_elem(map_fd(objects, map), key, value, BPF_ANY))
		return 0;
	return map_refuse_write(objects, map, err);
}

int map_delete(const struct objects *objects, enum map_number map, const void *key,
	       struct cni_error *err)
{
	if (!bpf_map_delete_elem(map_fd(objects, map), key) || errno == ENOENT)
		return 0;
	return bpf_error_set(err, errno, "cannot delete from the map %s", map_name(map));
}

bool map_read(const struct objects *objects, enum map_number map, const void *key, void *value)
{
	return !bpf_map_lookup_elem(map_fd(objects, map), key, value);
}

int map_set_bits(const struct objects *objects, enum map_number map, uint32_t number,
		 uint64_t wanted, struct cni_error *err)
{
	uint64_t bits;

	if (!map_read(objects, map, &number, &bits))
		return map_refuse_read(map, err);
	if ((bits & wanted) == wanted)
		return 0;
	bits |= wanted;
	return map_write(objects, map, &number, &bits, err);
}

static const uint32_t only;

bool usage_read(const struct objects *objects, struct usage *usage)
{
	return map_read(objects, MAP_USAGE, &only, usage);
}

bool meta_read(const struct objects *objects, struct meta *meta)
{
	return map_read(objects, MAP_META, &only, meta);
}

int meta_write(const struct objects *objects, const struct meta *meta, struct cni_error *err)
{
	return map_write(objects, MAP_META, &only, meta, err);
}

#define COUNTER_COUNT (sizeof(struct counters) / sizeof(__u64))

int counters_read(const struct objects *objects, struct counters *counters, struct cni_error *err)
{
	int cpus = libbpf_num_possible_cpus();
	cleanup_free __u64 *values = NULL;
	__u64 *sums = (__u64 *)counters;

	memset(counters, 0, sizeof(*counters));
	if (cpus < 0)
		return bpf_error_set(err, -cpus, "cannot count the host's CPUs");
	values = or_exit(calloc((size_t)cpus, sizeof(*counters)));
	if (!map_read(objects, MAP_COUNTERS, &only, values))
		return map_refuse_read(MAP_COUNTERS, err);
	for (size_t i = 0; i < (size_t)cpus * COUNTER_COUNT; i++)
		sums[i % COUNTER_COUNT] += values[i];
	return 0;
}

static void limit_count(__u8 *count, __u8 most)
{
	if (*count > most)
		*count = most;
}

bool policy_read(const struct objects *objects, struct owner owner, struct policy *policy)
{
	if (!map_read(objects, MAP_POLICIES, &owner.slot, policy) ||
	    !owner_is(policy->owner, owner))
		return false;
	/* As the programs do: a damaged entry may say anything. */
	limit_count(&policy->source4_count, POLICY_ADDRESSES);
	limit_count(&policy->source6_count, POLICY_ADDRESSES);
	limit_count(&policy->unmasqueraded_count, POLICY_RANGES);
	limit_count(&policy->source_range_count, POLICY_RANGES);
	limit_count(&policy->excluded_count, POLICY_RANGES);
	return true;
}

bool policy_says_nothing(const struct policy *policy)
{
	static const struct policy defaults;

	return !memcmp(policy, &defaults, sizeof(defaults));
}

int policy_write(const struct objects *objects, struct owner owner, const struct policy *wanted,
		 struct cni_error *err)
{
	struct policy policy = *wanted;

	/* There may be one of the slot's previous owner. */
	if (policy_says_nothing(wanted))
		return map_delete(objects, MAP_POLICIES, &owner.slot, err);
	policy.owner = owner;
	return map_write(objects, MAP_POLICIES, &owner.slot, &policy, err);
}

bool owner_is(struct owner a, struct owner b)
{
	return a.slot == b.slot && a.generation == b.generation;
}

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
