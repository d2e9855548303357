/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * maps.h - typed access to the maps.
 *
 * A value in an array is rewritten in place, and a program may read it half new: user
 * space changes one that is live only by one aligned word. A value in a hash is
 * replaced as a whole.
 */
#pragma once

#include <stdbool.h>

#include "lib/error.h"
#include "datapath/load/objects.h"

/* A walk through all entries of a map, in batches. Begins as {.objects, .map}. An entry may be
 * deleted while it is at hand. Without the lock the walk may miss entries that change meanwhile. */
struct map_walk {
	const struct objects *objects;
	enum map_number map;
	const void *key, *value; /* of the entry at hand */
	bool failed;

	char *keys, *values; /* of one batch */
	uint32_t capacity, count, next, position;
	bool has_begun, is_last;
};

/* Goes on to the next entry. False: there is none, or `failed` is set: CNI_ERROR_KERNEL_REFUSED. */
bool map_next(struct map_walk *walk, struct cni_error *err);
void map_walk_end(struct map_walk *walk);

#define cleanup_walk __attribute__((cleanup(map_walk_end)))

/* Returns how many entries there can be; 0 where the kernel does not say. */
uint32_t map_capacity(const struct objects *objects, enum map_number map);

/* Writes an entry. CNI_ERROR_KERNEL_REFUSED, with the number of entries where the map is full. */
int map_write(const struct objects *objects, enum map_number map, const void *key,
	      const void *value, struct cni_error *err);
/* Deletes the entry; one that is not there is no error. CNI_ERROR_KERNEL_REFUSED. */
int map_delete(const struct objects *objects, enum map_number map, const void *key,
	       struct cni_error *err);

/* Both set CNI_ERROR_KERNEL_REFUSED, by errno, and return -1. */
int map_refuse_read(enum map_number map, struct cni_error *err);
int map_refuse_write(const struct objects *objects, enum map_number map, struct cni_error *err);

/* Reads an entry. Returns false where there is none. */
bool map_read(const struct objects *objects, enum map_number map, const void *key, void *value);

/* Sets bits of a word of an array of words. CNI_ERROR_KERNEL_REFUSED. */
int map_set_bits(const struct objects *objects, enum map_number map, uint32_t number,
		 uint64_t wanted, struct cni_error *err);

/* NAME_read() and NAME_write(), which do what the two above do, with checked types. */
#define MAP_BY_KEY(name, map) \
	static inline bool name##_read(const struct objects *objects, \
				       const struct name##_key *key, struct name *value) \
	{ \
		return map_read(objects, map, key, value); \
	} \
	static inline int name##_write(const struct objects *objects, \
				       const struct name##_key *key, const struct name *value, \
				       struct cni_error *err) \
	{ \
		return map_write(objects, map, key, value, err); \
	}
#define MAP_BY_NUMBER(name, map) \
	static inline bool name##_read(const struct objects *objects, uint32_t number, \
				       struct name *value) \
	{ \
		return map_read(objects, map, &number, value); \
	} \
	static inline int name##_write(const struct objects *objects, uint32_t number, \
				       const struct name *value, struct cni_error *err) \
	{ \
		return map_write(objects, map, &number, value, err); \
	}

MAP_BY_KEY(endpoint, MAP_ENDPOINTS)
MAP_BY_KEY(network, MAP_NETWORKS)
MAP_BY_KEY(connection, MAP_CONNECTIONS)
MAP_BY_KEY(attachment, MAP_ATTACHMENTS)
MAP_BY_NUMBER(slot, MAP_SLOTS)
MAP_BY_NUMBER(interface, MAP_INTERFACES) /* by its ifindex */

/* Reads the whole entry of a port; portmap_read() reads who has it now. */
static inline bool portmap_succession_read(const struct objects *objects,
					   const struct portmap_key *key,
					   struct portmap_succession *entry)
{
	return map_read(objects, MAP_PORTMAPS, key, entry);
}

static inline bool portmap_read(const struct objects *objects, const struct portmap_key *key,
				struct portmap *portmap)
{
	struct portmap_succession entry;
	bool found = portmap_succession_read(objects, key, &entry);

	if (found)
		*portmap = entry.now;
	return found;
}

/* Read maps that have one entry. */
bool usage_read(const struct objects *objects, struct usage *usage);
bool meta_read(const struct objects *objects, struct meta *meta);
int meta_write(const struct objects *objects, const struct meta *meta, struct cni_error *err);

/* Reads the sums over all CPUs. CNI_ERROR_KERNEL_REFUSED. */
int counters_read(const struct objects *objects, struct counters *counters, struct cni_error *err);

/* What an attachment's configuration says about its flows goes by slot number: what a killed run
 * left is replaced, or deleted, by the next user of the slot, and until then belongs to nobody. */

/* Reads the owner's; false: it has none. */
bool policy_read(const struct objects *objects, struct owner owner, struct policy *policy);
/* Returns whether it has nothing but defaults: then it needs no entry. */
bool policy_says_nothing(const struct policy *policy);
/* Writes the wanted policy, which names no owner. Where it says nothing but defaults, the slot has
 * no entry afterwards. Call it with the lock, before the slot is live; its `has_policy` must say
 * the same. CNI_ERROR_KERNEL_REFUSED. */
int policy_write(const struct objects *objects, struct owner owner, const struct policy *wanted,
		 struct cni_error *err);

bool owner_is(struct owner a, struct owner b);

/* Reads the owner's slot. Returns false where nobody is that owner any more. */
bool owner_read(const struct objects *objects, struct owner owner, struct slot *slot);

void slot_get_key(const struct slot *slot, struct attachment_key *key);

/* Reads the record of the attachment that a slot names. Returns false where there is none that
 * points back. */
bool slot_read_record(const struct objects *objects, uint32_t number, const struct slot *slot,
		      struct attachment *record);
