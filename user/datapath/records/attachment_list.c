/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* attachments_list.c - which attachments there are. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "datapath/records/attachment_list.h"
#include "datapath/load/maps.h"
#include "datapath/load/bpf_error.h"

struct listing {
	struct attachment_entry *entries;
	size_t count, capacity;
	bool failed;
};

static bool append_entry(const void *key, const void *value, void *context)
{
	struct listing *listing = context;

	if (listing->count == listing->capacity) {
		size_t capacity = listing->capacity ? 2 * listing->capacity : 64;
		void *entries = realloc(listing->entries, capacity * sizeof(*listing->entries));

		if (!entries) {
			listing->failed = true;
			return false;
		}
		listing->entries = entries;
		listing->capacity = capacity;
	}
	memcpy(&listing->entries[listing->count].key, key, sizeof(struct attachment_key));
	memcpy(&listing->entries[listing->count].attachment, value, sizeof(struct attachment));
	listing->count++;
	return true;
}

int attachment_list(const struct datapath *datapath, struct attachment_entry **entries,
		    size_t *count, struct cni_error *err)
{
	struct listing listing = {0};
	int result =
		maps_walk(datapath->objects.maps[MAP_ATTACHMENTS], sizeof(struct attachment_key),
			  sizeof(struct attachment), append_entry, &listing);

	if (!result && !listing.failed) {
		*entries = listing.entries;
		*count = listing.count;
		return 0;
	}
	free(listing.entries);
	if (listing.failed)
		return cni_error_no_memory(err);
	return bpf_error_set(err, errno, "cannot read the map attachments");
}
