/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* list.c - list: what the cache has for a network. */
#include "cnirun/verbs.h"

#include "lib/cleanup.h"
#include "cnirun/cache.h"
#include "cnirun/output.h"

int verb_list(const struct options *options, const struct conflist *list, struct cni_error *err)
{
	cleanup_cache_entries struct cache_entries entries = {0};
	cleanup_json json_t *all = json_array();

	if (cache_read_all(&entries, list->name, options->conf.cache_directory, err))
		return -1;
	/* The cache's own objects, without the conflist that each of them has. */
	for (size_t i = 0; i < entries.count; i++) {
		json_object_del(entries.entries[i].root, "config");
		json_array_append(all, entries.entries[i].root);
	}
	return output_json(all, err);
}
