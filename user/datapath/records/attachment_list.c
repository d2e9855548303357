/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* attachment_list.c - which attachments there are. */
#include "datapath/records/attachment_list.h"

#include <stdlib.h>
#include <string.h>

#include "lib/array.h"
#include "datapath/load/maps.h"

struct listing {
	struct attachment_entry *entries;
	size_t count;
};

static enum walk add_entry(const void *key, const void *value, void *context, struct cni_error *err)
{
	struct listing *listing = context;
	struct attachment_entry *entry = ARRAY_ADD(listing->entries, listing->count);

	if (!entry) {
		cni_error_no_memory(err);
		return WALK_FAILED;
	}
	memcpy(&entry->key, key, sizeof(entry->key));
	memcpy(&entry->attachment, value, sizeof(entry->attachment));
	return WALK_ON;
}

int attachment_list(const struct datapath *datapath, struct attachment_entry **entries,
		    size_t *count, struct cni_error *err)
{
	struct listing listing = {0};

	if (map_walk(&datapath->objects, MAP_ATTACHMENTS, add_entry, &listing, err)) {
		free(listing.entries);
		return -1;
	}
	*entries = listing.entries;
	*count = listing.count;
	return 0;
}
