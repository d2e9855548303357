/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* network.c - gc, status, version, list: what concerns a network and not one container. */
#include <string.h>

#include "runtimes/cnirun/verbs.h"
#include "lib/cleanup.h"
#include "cni/version.h"
#include "runtimes/cnirun/cache.h"
#include "runtimes/cnirun/output.h"
#include "runtimes/cnirun/plugin.h"

#define GC_SINCE "1.1.0"
#define STATUS_SINCE "1.1.0"

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

/* Returns the valid attachments, as GC wants them. */
static json_t *sort_out(const struct conflist *list, const struct options *options,
			const struct cache_entries *entries, struct cni_error *all)
{
	json_t *valid = json_array();

	for (size_t i = 0; i < entries->count; i++) {
		const struct cache_entry *entry = &entries->entries[i];
		struct runtime_conf conf = plugin_conf_of_network(&options->conf);
		struct cni_error problem = {0};

		/* Only an absolute path in the cache can tell that the namespace is gone. */
		if (entry->netns && *entry->netns == '/' && netns_is_gone(entry->netns)) {
			conf.container_id = entry->container_id;
			conf.ifname = entry->ifname;
			conf.netns = entry->netns;
			/* The cache's file may have invalid names. */
			if (runtime_conf_validate(&conf, &problem) ||
			    attachment_del(list, &conf, &problem))
				cni_error_join(all, &problem);
		} else {
			json_array_append_new(valid, json_pack("{s:s, s:s}", "containerID",
							       entry->container_id, "ifname",
							       entry->ifname));
		}
	}
	/* A file that cannot be used may be that of a live container, whose ports GC would free. So
	 * all attachments that it may be of are valid. */
	json_array_extend(valid, entries->possible);
	return valid;
}

int verb_gc(const struct options *options, const struct conflist *list, struct cni_error *err)
{
	const struct runtime_conf conf = plugin_conf_of_network(&options->conf);
	cleanup_cache_lock int lock = CACHE_LOCK_NONE;
	cleanup_cache_entries struct cache_entries entries = {0};
	cleanup_json json_t *valid = NULL;

	if (list->disable_gc)
		return 0;
	if (cache_lock_network(&lock, list->name, &conf, err) ||
	    cache_read_all(&entries, list->name, conf.cache_directory, err))
		return -1;
	cache_sweep(list->name, conf.cache_directory);
	valid = sort_out(list, options, &entries, err);
	if (conflist_version_reaches(list, GC_SINCE))
		plugin_run_all(&(struct operation){"GC", list, &conf, valid, true, NULL}, NULL,
			       NULL, err);
	return cni_error_is_set(err) ? -1 : 0;
}

int verb_status(const struct options *options, const struct conflist *list, struct cni_error *err)
{
	const struct runtime_conf conf = plugin_conf_of_network(&options->conf);

	if (conflist_version_reaches(list, STATUS_SINCE))
		return plugin_run_all(
			&(struct operation){.command = "STATUS", .list = list, .conf = &conf}, NULL,
			NULL, err);
	/* libcni asks no plugin, either, and succeeds. */
	output_warn("conflist \"%s\" has %s%s: plugins cannot be asked (" STATUS_SINCE " needed)",
		    list->name, *list->version ? "cniVersion " : "no cniVersion", list->version);
	return 0;
}

/* `versions` is NULL for a plugin that did not answer. */
static void print_versions(const char *type, const json_t *versions, const char *wanted)
{
	bool speaks = false;
	const json_t *version;
	size_t index;

	json_array_foreach (versions, index, version)
		speaks |= json_is_string(version) && !strcmp(json_string_value(version), wanted);
	if (versions)
		output_text("%-20s %-7s", type, speaks ? "yes" : "no");
	else
		output_text("%-20s ?", type);
	json_array_foreach (versions, index, version)
		if (json_is_string(version))
			output_text(" %s", json_string_value(version));
	output_text("\n");
}

int verb_version(const struct options *options, const struct conflist *list, struct cni_error *err)
{
	const char *wanted = *list->version ? list->version : CNI_VERSION_OLDEST;
	const json_t *plugin;
	size_t index;

	output_text("%-20s %-7s VERSIONS\n", "PLUGIN", wanted);
	json_array_foreach (list->plugins, index, plugin) {
		struct cni_error problem = {0};
		cleanup_json json_t *versions =
			plugin_ask_versions(list, &options->conf, plugin, &problem);

		print_versions(conflist_plugin_type(plugin), versions, wanted);
		if (!versions)
			cni_error_join(err, &problem);
	}
	return cni_error_is_set(err) ? -1 : output_flush(err);
}
