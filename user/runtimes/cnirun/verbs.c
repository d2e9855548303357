/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* verbs.c - what each verb does. */
#include "runtimes/cnirun/verbs.h"

#include <string.h>
#include <unistd.h>

#include "cni/result.h"
#include "cni/version.h"
#include "lib/cleanup.h"
#include "lib/json.h"
#include "lib/memory.h"
#include "runtimes/cnirun/cache.h"
#include "runtimes/cnirun/output.h"
#include "runtimes/cnirun/plugin.h"

/* --- add, del, check: a container's interface on a network, under its lock -------------------- */

#define PREV_RESULT_FOR_DEL_SINCE "0.4.0"
#define CHECK_SINCE "0.4.0"

/* Otherwise ports that no plugin maps would be dropped silently. */
static int require_capabilities(const struct conflist *list, json_t *demanded,
				struct cni_error *err)
{
	const char *capability;
	json_t *value;

	json_object_foreach (demanded, capability, value)
		if (!conflist_has_capability(list, capability))
			return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
					     "no plugin of the list \"%s\" declares the capability "
					     "\"%s\": add \"capabilities\": {\"%s\": true} to the "
					     "plugin that has it",
					     list->name, capability, capability);
	return 0;
}

/* Refuses to overwrite another attachment's file. A file that is broken may be overwritten, and is
 * a sign of an earlier ADD, too. */
static int look_for_earlier_add(const struct conflist *list, const struct runtime_conf *conf,
				bool *added_before, struct cni_error *err)
{
	cleanup_cache_entry struct cache_entry entry = {0};
	struct cni_error problem = {0};
	int failed = cache_read(&entry, list->name, conf, &problem);

	*added_before = failed || entry.root;
	if (entry.is_of_another) {
		*err = problem;
		return -1;
	}
	cni_error_release(&problem);
	return 0;
}

static int add_attachment(const struct conflist *list, const struct runtime_conf *conf,
			  struct cni_error *err)
{
	const struct operation operation = {.command = "ADD", .list = list, .conf = conf};
	/* As much as possible is to be freed. */
	const struct operation undo = {"DEL", list, conf, NULL, true, "when cleaning up"};
	bool knows_result = conflist_version_reaches(list, PREV_RESULT_FOR_DEL_SINCE);
	cleanup_json json_t *result = NULL;
	bool added_before;

	if (look_for_earlier_add(list, conf, &added_before, err) ||
	    plugin_find_all(&operation, err))
		return -1;
	/* Whoever called has no attachment without its result. */
	if (!plugin_run_all(&operation, NULL, &result, err) &&
	    !cache_write(list, conf, result, err) && !output_json(result, err))
		return 0;
	if (added_before)
		output_warn("this attachment was added before: what that ADD set up is left as it "
			    "is; `cnirun del` removes it");
	else if (!plugin_run_all(&undo, knows_result ? result : NULL, NULL, err))
		cache_remove(list->name, conf, err);
	return -1;
}

static bool has_old_shape(const char *version)
{
	return cni_version_family(version) == CNI_FAMILY_0_1;
}

/* *result: the cached one, labelled with the conflist's version, which may have changed since ADD;
 * stays NULL when there is none. Plugins of 0.3.0 and later read each other's results. */
static int result_of_entry(const struct conflist *list, const struct cache_entry *entry,
			   json_t **result, struct cni_error *err)
{
	const char *wanted = *list->version ? list->version : CNI_VERSION_OLDEST;
	const char *version = json_string_value(cni_json_get(entry->result, "cniVersion"));

	if (!entry->result)
		return 0;
	if (!version || !*version)
		version = wanted;
	if (!cni_version_is_supported(version) || !cni_version_is_supported(wanted) ||
	    has_old_shape(version) != has_old_shape(wanted))
		return cni_error_set(err, CNI_ERROR_INCOMPATIBLE_VERSION,
				     "%s: the result is of version \"%s\", and the list of \"%s\"",
				     entry->path, version, wanted);
	if (cni_result_validate(entry->result, version, err))
		return cni_error_wrap(err, "%s", entry->path);
	*result = cni_result_relabel(entry->result, wanted);
	return 0;
}

/* The cache's values for what was not given. */
static struct runtime_conf complete_from_cache(const struct runtime_conf *conf,
					       const struct cache_entry *entry)
{
	struct runtime_conf completed = *conf;

	if (!completed.args)
		completed.args = entry->args;
	if (!completed.capability_args)
		completed.capability_args = entry->capability_args;
	if (!*completed.netns && entry->netns)
		completed.netns = entry->netns;
	return completed;
}

/* Runs DEL in reverse order, until the first error; removes the cache's file last. What `conf`
 * lacks is taken from the cache. The caller holds the lock. */
static int attachment_del(const struct conflist *list, const struct runtime_conf *conf,
			  struct cni_error *err)
{
	cleanup_cache_entry struct cache_entry entry = {0};
	cleanup_json json_t *prev_result = NULL;
	cleanup_error struct cni_error problem = {0};
	struct runtime_conf completed;

	/* DEL must go on without what cannot be read. */
	if (cache_read(&entry, list->name, conf, &problem) ||
	    (conflist_version_reaches(list, PREV_RESULT_FOR_DEL_SINCE) &&
	     result_of_entry(list, &entry, &prev_result, &problem)))
		output_warn("going on without the cached result: %s", cni_error_message(&problem));
	completed = entry.is_of_another ? *conf : complete_from_cache(conf, &entry);
	/* Plugins know a path that does not exist, and none, but no file that is no namespace. */
	if (netns_is_gone(completed.netns) && !access(completed.netns, F_OK))
		completed.netns = "";
	if (plugin_run_all(&(struct operation){"DEL", list, &completed, NULL, false, NULL},
			   prev_result, NULL, err))
		return -1;
	return entry.is_of_another ? 0 : cache_remove(list->name, conf, err);
}

static int check_attachment(const struct conflist *list, const struct runtime_conf *conf,
			    struct cni_error *err)
{
	cleanup_cache_entry struct cache_entry entry = {0};
	cleanup_json json_t *prev_result = NULL;
	struct runtime_conf completed;

	if (!conflist_version_reaches(list, CHECK_SINCE))
		return cni_error_set(err, CNI_ERROR_INCOMPATIBLE_VERSION,
				     "configuration version \"%s\" does not support the CHECK "
				     "command",
				     list->version);
	if (list->disable_check)
		return 0;
	if (cache_read(&entry, list->name, conf, err) ||
	    result_of_entry(list, &entry, &prev_result, err))
		return -1;
	/* As in libcni, the plugins say what is missing where it was never added. */
	completed = complete_from_cache(conf, &entry);
	return plugin_run_all(&(struct operation){"CHECK", list, &completed, NULL, false, NULL},
			      prev_result, NULL, err);
}

static int lock_attachment(int *lock, const struct options *options, const struct conflist *list,
			   struct cni_error *err)
{
	const struct runtime_conf *conf = &options->conf;

	if (!conf->container_id)
		return cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT,
				     "NETNS is empty: --id must say which container it is");
	/* Before the lock, whose file is named after the container and the interface. */
	if (runtime_conf_validate(conf, err))
		return -1;
	return cache_lock_attachment(lock, list->name, conf, err);
}

int verb_add(const struct options *options, const struct conflist *list, struct cni_error *err)
{
	const struct runtime_conf *conf = &options->conf;
	cleanup_cache_lock int lock = CACHE_LOCK_NONE;

	if (!*conf->netns)
		return cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT,
				     "NETNS is empty: only del can do without");
	if (netns_is_gone(conf->netns))
		return cni_error_set(err, CNI_ERROR_INVALID_NETNS,
				     "there is no network namespace %s: make it with `ip netns "
				     "add`, or give the path of another",
				     conf->netns);
	if (require_capabilities(list, options->demanded, err) ||
	    lock_attachment(&lock, options, list, err))
		return -1;
	return add_attachment(list, conf, err);
}

int verb_del(const struct options *options, const struct conflist *list, struct cni_error *err)
{
	cleanup_cache_lock int lock = CACHE_LOCK_NONE;

	if (lock_attachment(&lock, options, list, err))
		return -1;
	return attachment_del(list, &options->conf, err);
}

int verb_check(const struct options *options, const struct conflist *list, struct cni_error *err)
{
	cleanup_cache_lock int lock = CACHE_LOCK_NONE;

	if (lock_attachment(&lock, options, list, err))
		return -1;
	return check_attachment(list, &options->conf, err);
}

/* --- gc, status, version, list: what concerns a network and not one container --------------- */

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

	for_each (entry, entries->entries, entries->count) {
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

		print_versions(plugin_type(plugin), versions, wanted);
		if (!versions)
			cni_error_join(err, &problem);
	}
	return cni_error_is_set(err) ? -1 : output_flush(err);
}
