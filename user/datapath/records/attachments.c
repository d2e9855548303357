/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* attachments.c - which attachments there are, and what they are called in the maps. */
#include "datapath/records/attachments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/array.h"
#include "datapath/load/maps.h"

int attachment_key_make(struct attachment_key *key, const char *network, const char *container_id,
			const char *ifname, struct cni_error *err)
{
	int length;

	memset(key, 0, sizeof(*key));
	length = snprintf(key->name, sizeof(key->name), "%s/%s/%s", network, container_id, ifname);
	if (length >= 0 && (size_t)length < sizeof(key->name))
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT,
			     "network name, CNI_CONTAINERID and CNI_IFNAME are %d bytes together,"
			     " at most %zu are possible",
			     length - 2, sizeof(key->name) - 3);
}

bool attachment_name_split(const char key[ATTACHMENT_KEY_SIZE], struct attachment_name *name)
{
	char *container_id, *ifname;

	memcpy(name->text, key, ATTACHMENT_KEY_SIZE);
	name->text[ATTACHMENT_KEY_SIZE] = '\0';
	container_id = strchr(name->text, '/');
	ifname = container_id ? strchr(container_id + 1, '/') : NULL;
	if (!ifname)
		return false;
	*container_id = *ifname = '\0';
	name->network = name->text;
	name->container_id = container_id + 1;
	name->ifname = ifname + 1;
	return true;
}

bool attachments_are_of_one_container(const char one[ATTACHMENT_KEY_SIZE],
				      const char other[ATTACHMENT_KEY_SIZE])
{
	struct attachment_name one_name, other_name;

	return attachment_name_split(one, &one_name) && attachment_name_split(other, &other_name) &&
	       !strcmp(one_name.container_id, other_name.container_id);
}

struct listing {
	struct attachment_entry *entries;
	size_t count;
};

static enum walk add_entry(const void *key, const void *value, void *context, struct cni_error *err)
{
	struct listing *listing = context;
	struct attachment_entry *entry = ARRAY_ADD(listing->entries, listing->count);

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
