/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * maps.h - typed access to the maps.
 *
 * A value in an array is rewritten in place, and a program may read it half new: user
 * space changes one that is live only by one aligned word. A value in a hash is
 * replaced as a whole.
 */
#ifndef DATAPATH_LOAD_MAPS_H
#define DATAPATH_LOAD_MAPS_H

#include <stdbool.h>

#include "lib/error.h"
#include "datapath/load/objects.h"

/* What a visitor returns; WALK_FAILED with an error set. */
enum walk {
	WALK_FAILED = -1,
	WALK_ON,
	WALK_ENOUGH,
};

typedef enum walk map_visitor(const void *key, const void *value, void *context,
			      struct cni_error *err);

/* Visits all entries, in batches. A visitor may delete the entry that it visits. Without the lock
 * the walk may miss entries that change meanwhile. 0, or -1 and the visitor's error, or
 * CNI_ERROR_KERNEL_REFUSED. */
int map_walk(const struct objects *objects, enum map_number map, map_visitor *visit, void *context,
	     struct cni_error *err);

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

bool slot_read(const struct objects *objects, uint32_t number, struct slot *slot);
int slot_write(const struct objects *objects, uint32_t number, const struct slot *slot,
	       struct cni_error *err);

/* Reads it. Returns false where there is none. */
bool attachment_read(const struct objects *objects, const struct attachment_key *key,
		     struct attachment *attachment);
int attachment_write(const struct objects *objects, const struct attachment_key *key,
		     const struct attachment *attachment, struct cni_error *err);

bool interface_read(const struct objects *objects, uint32_t ifindex, struct interface *interface);
int interface_write(const struct objects *objects, uint32_t ifindex,
		    const struct interface *interface, struct cni_error *err);
void interface_delete(const struct objects *objects, uint32_t ifindex);

bool connection_read(const struct objects *objects, const struct connection_key *key,
		     struct connection *connection);

bool endpoint_read(const struct objects *objects, const struct endpoint_key *key,
		   struct endpoint *endpoint);
int endpoint_write(const struct objects *objects, const struct endpoint_key *key,
		   const struct endpoint *endpoint, struct cni_error *err);
bool portmap_read(const struct objects *objects, const struct portmap_key *key,
		  struct portmap *portmap);

/* Reads it; all zero where it cannot be read. */
void noticed_read(const struct objects *objects, struct noticed *noticed);

/* The sums over all CPUs. CNI_ERROR_KERNEL_REFUSED. */
int counters_read(const struct objects *objects, struct counters *counters, struct cni_error *err);

/* Of the owner alone; false: it has none. */
bool policy_read(const struct objects *objects, struct owner owner, struct policy *policy);
bool network_read(const struct objects *objects, const struct network_key *key,
		  struct network *network);
bool usage_read(const struct objects *objects, struct usage *usage);

bool meta_read(const struct objects *objects, struct meta *meta);
int meta_write(const struct objects *objects, const struct meta *meta, struct cni_error *err);

bool owner_is(struct owner a, struct owner b);

#endif
