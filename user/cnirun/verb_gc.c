/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * verb_gc.c - gc: a DEL for what the cache has and whose netns is gone, then the
 * plugins' own GC with what is left.
 */
#include "cni/cleanup.h"
#include "cnirun/attachment.h"
#include "cnirun/cache.h"
#include "cnirun/conflist.h"
#include "cnirun/errors.h"
#include "cnirun/invoke.h"
#include "cnirun/lock.h"
#include "cnirun/netns.h"
#include "cnirun/output.h"
#include "cnirun/request.h"
#include "cnirun/verbs.h"

#define cleanup_conflist __attribute__((cleanup(conflist_release)))
#define GC_SINCE "1.1.0"

/* Without the absolute path of a netns in the cache nothing tells that it is gone. */
static bool is_stale(const struct cache_entry *entry)
{
	return entry->netns && *entry->netns == '/' && netns_is_gone(entry->netns);
}

static int del_stale(const struct conflist *list, const struct options *options,
		     const struct cache_entry *entry, struct cni_error *err)
{
	const struct attachment attachment = {
		.list = list,
		.container_id = entry->container_id,
		.ifname = entry->ifname,
		.netns = entry->netns,
		.execution = options->execution,
		.cache_directory = options->cache_directory,
	};

	return attachment_del(&attachment, err);
}

/* Returns the valid attachments, as GC wants them; NULL without memory. */
static json_t *sort_out(const struct conflist *list, const struct options *options,
			const struct cache_entries *entries, struct cni_error *all)
{
	cleanup_json json_t *valid = json_array();

	for (size_t i = 0; valid && i < entries->count; i++) {
		const struct cache_entry *entry = &entries->entries[i];
		struct cni_error problem = {0};

		if (is_stale(entry)) {
			if (del_stale(list, options, entry, &problem))
				errors_join(all, &problem);
		} else if (json_array_append_new(valid, json_pack("{s:s, s:s}", "containerID",
								  entry->container_id, "ifname",
								  entry->ifname))) {
			return NULL;
		}
	}
	return TAKE(valid);
}

static int gc_plugin(const struct conflist *list, const struct options *options,
		     const json_t *plugin, json_t *valid, struct cni_error *err)
{
	cleanup_json json_t *request = request_compose_gc(list, plugin, valid, err);

	return request ? invoke_for_network(list, plugin, "GC", &options->execution, request, err)
		       : -1;
}

static void gc_plugins(const struct conflist *list, const struct options *options, json_t *valid,
		       struct cni_error *all)
{
	const json_t *plugin;
	size_t index;

	json_array_foreach (list->plugins, index, plugin) {
		struct cni_error problem = {0};

		if (gc_plugin(list, options, plugin, valid, &problem))
			errors_join(all, &problem);
	}
}

static int collect(const struct conflist *list, const struct options *options,
		   struct cni_error *err)
{
	cleanup_cache_entries struct cache_entries entries = {0};
	cleanup_json json_t *valid = NULL;
	struct cni_error all = {0};

	if (cache_read_all(&entries, options->cache_directory, list->name, err))
		return -1;
	valid = sort_out(list, options, &entries, &all);
	/* A live container may be behind a file that cannot be used, and GC would take its
	 * ports: all that it may stand for are valid. */
	if (!valid || json_array_extend(valid, entries.possible)) {
		cni_error_release(&all);
		return cni_error_no_memory(err);
	}
	if (conflist_version_reaches(list, GC_SINCE))
		gc_plugins(list, options, valid, &all);
	if (!all.code && !all.message)
		return 0;
	*err = all;
	return -1;
}

int verb_gc(const struct options *options, struct cni_error *err)
{
	cleanup_conflist struct conflist list = {0};
	cleanup_lock struct lock lock = LOCK_NONE;

	if (conflist_find(&list, options->conflist, err))
		return -1;
	if (list.disable_gc)
		return 0;
	if (lock_network(&lock, options->cache_directory, list.name, err))
		return -1;
	return collect(&list, options, err);
}
