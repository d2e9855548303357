/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * attachment.c - a container's interface on a network: added, deleted, checked.
 */
#include "cnirun/attachment.h"

#include <stdlib.h>
#include <string.h>

#include "cni/cleanup.h"
#include "cni/environment.h"
#include "cni/json.h"
#include "cni/result.h"
#include "cni/version.h"
#include "cnirun/args.h"
#include "cnirun/cache.h"
#include "cnirun/errors.h"
#include "cnirun/invoke.h"
#include "cnirun/output.h"
#include "cnirun/request.h"
#include "cnirun/result_validate.h"

#define PREV_RESULT_FOR_DEL_SINCE "0.4.0"
#define CHECK_SINCE "0.4.0"

int attachment_validate(const struct attachment *attachment, struct cni_error *err)
{
	if (cni_validate_container_id(attachment->container_id, err) ||
	    cni_validate_ifname(attachment->ifname, err))
		return -1;
	return 0;
}

/* One operation of one plugin. */
static int run(const struct attachment *attachment, const char *command, const json_t *plugin,
	       json_t *prev_result, json_t **result, struct cni_error *err)
{
	cleanup_free char *args = args_format(attachment->args);
	cleanup_json json_t *request = request_compose(attachment->list, plugin, prev_result,
						       attachment->capability_args, err);
	const struct execute_environment environment = {
		.command = command,
		.container_id = attachment->container_id,
		.netns = attachment->netns,
		.ifname = attachment->ifname,
		.args = args,
		.path = attachment->execution.path,
	};

	if (!request)
		return -1;
	if (!args)
		return cni_error_no_memory(err);
	return invoke_plugin(attachment->list, plugin, &environment, &attachment->execution,
			     request, result, err);
}

static int read_cache(const struct attachment *attachment, struct cache_entry *entry,
		      struct cni_error *err)
{
	return cache_read(entry, attachment->cache_directory, attachment->list->name,
			  attachment->container_id, attachment->ifname, err);
}

static int write_cache(const struct attachment *attachment, json_t *result, struct cni_error *err)
{
	const struct cache_record record = {
		.list = attachment->list,
		.container_id = attachment->container_id,
		.ifname = attachment->ifname,
		.netns = attachment->netns,
		.args = attachment->args,
		.capability_args = attachment->capability_args,
		.result = result,
	};

	return cache_write(&record, attachment->cache_directory, err);
}

/* Refuses what would overwrite another attachment's file. One that is broken may be, and
 * tells of an earlier ADD all the same. */
static int look_for_earlier_add(const struct attachment *attachment, bool *added_before,
				struct cni_error *err)
{
	cleanup_cache_entry struct cache_entry entry = {0};
	struct cni_error problem = {0};
	int failed = read_cache(attachment, &entry, &problem);

	*added_before = failed || entry.root;
	if (failed && entry.foreign) {
		*err = problem;
		return -1;
	}
	cni_error_release(&problem);
	return 0;
}

static int add_in_order(const struct attachment *attachment, json_t **result, struct cni_error *err)
{
	const json_t *plugin;
	size_t index;

	json_array_foreach (attachment->list->plugins, index, plugin) {
		json_t *answer = NULL;

		if (run(attachment, "ADD", plugin, *result, &answer, err))
			return -1;
		json_decref(*result);
		*result = answer;
	}
	return 0;
}

/* Unlike attachment_del() it goes on after an error: whatever can be freed is. */
static void clean_up_after_add(const struct attachment *attachment, json_t *last_result,
			       struct cni_error *err)
{
	json_t *prev_result = last_result;
	size_t index = json_array_size(attachment->list->plugins);

	if (!conflist_version_reaches(attachment->list, PREV_RESULT_FOR_DEL_SINCE))
		prev_result = NULL;
	while (index--) {
		const json_t *plugin = json_array_get(attachment->list->plugins, index);
		struct cni_error problem = {0};

		if (run(attachment, "DEL", plugin, prev_result, NULL, &problem)) {
			cni_error_wrap(&problem, "when cleaning up");
			errors_join(err, &problem);
		}
	}
}

int attachment_add(const struct attachment *attachment, json_t **result, struct cni_error *err)
{
	cleanup_json json_t *answer = NULL;
	bool added_before;

	if (attachment_validate(attachment, err) ||
	    look_for_earlier_add(attachment, &added_before, err) ||
	    invoke_find_all(attachment->list, attachment->execution.path, err))
		return -1;
	if (!add_in_order(attachment, &answer, err) && !write_cache(attachment, answer, err)) {
		*result = TAKE(answer);
		return 0;
	}
	if (!added_before)
		clean_up_after_add(attachment, answer, err);
	else
		output_warn("this attachment was added before: what that ADD set up is left as it "
			    "is; `cnirun del` removes it");
	return -1;
}

/* *result: the cached one in the version that the list has now. */
static int convert_cached(const struct cache_entry *entry, const char *wanted, json_t **result,
			  struct cni_error *err)
{
	const char *version = json_string_value(cni_json_get(entry->result, "cniVersion"));

	if (!version || !*version)
		version = wanted;
	if (!cni_version_is_supported(version) || !cni_version_is_supported(wanted))
		return cni_error_set(err, CNI_ERROR_INCOMPATIBLE_VERSION,
				     "the cached result is of version \"%s\", the list of \"%s\"",
				     version, wanted);
	if (result_validate(entry->result, version, err))
		return -1;
	if (!strcmp(version, wanted))
		*result = json_incref(entry->result);
	else
		*result = cni_result_convert(entry->result, version, wanted, err);
	return *result ? 0 : -1;
}

/* *result stays NULL when there is none. */
static int result_of_cache(const struct attachment *attachment, const struct cache_entry *entry,
			   json_t **result, struct cni_error *err)
{
	const char *wanted = attachment->list->version;

	if (!entry->result)
		return 0;
	if (convert_cached(entry, *wanted ? wanted : CNI_VERSION_OLDEST, result, err))
		return cni_error_wrap(err, "%s", entry->path);
	return 0;
}

/* The attachment, with the cache's values for those that the caller did not give. */
static struct attachment complete(const struct attachment *attachment,
				  const struct cache_entry *entry)
{
	struct attachment complete = *attachment;

	if (!complete.args)
		complete.args = entry->args;
	if (!complete.capability_args)
		complete.capability_args = entry->capability_args;
	if (!*complete.netns && entry->netns)
		complete.netns = entry->netns;
	return complete;
}

static int del_in_reverse(const struct attachment *attachment, json_t *prev_result,
			  struct cni_error *err)
{
	size_t index = json_array_size(attachment->list->plugins);

	while (index--) {
		const json_t *plugin = json_array_get(attachment->list->plugins, index);

		if (run(attachment, "DEL", plugin, prev_result, NULL, err))
			return -1;
	}
	return 0;
}

/* DEL must go on without what cannot be read. */
static void read_for_del(const struct attachment *attachment, struct cache_entry *entry,
			 json_t **prev_result)
{
	struct cni_error problem = {0};
	int failed = read_cache(attachment, entry, &problem);

	if (!failed && conflist_version_reaches(attachment->list, PREV_RESULT_FOR_DEL_SINCE))
		failed = result_of_cache(attachment, entry, prev_result, &problem);
	if (failed)
		output_warn("going on without the cached result: %s", cni_error_message(&problem));
	cni_error_release(&problem);
}

int attachment_del(const struct attachment *attachment, struct cni_error *err)
{
	cleanup_cache_entry struct cache_entry entry = {0};
	cleanup_json json_t *prev_result = NULL;
	struct attachment completed;

	if (attachment_validate(attachment, err))
		return -1;
	read_for_del(attachment, &entry, &prev_result);
	completed = entry.foreign ? *attachment : complete(attachment, &entry);
	if (del_in_reverse(&completed, prev_result, err))
		return -1;
	if (entry.foreign)
		return 0;
	return cache_remove(attachment->cache_directory, attachment->list->name,
			    attachment->container_id, attachment->ifname, err);
}

static int check_in_order(const struct attachment *attachment, json_t *prev_result,
			  struct cni_error *err)
{
	const json_t *plugin;
	size_t index;

	json_array_foreach (attachment->list->plugins, index, plugin) {
		if (run(attachment, "CHECK", plugin, prev_result, NULL, err))
			return -1;
	}
	return 0;
}

int attachment_check(const struct attachment *attachment, struct cni_error *err)
{
	cleanup_cache_entry struct cache_entry entry = {0};
	cleanup_json json_t *prev_result = NULL;
	struct attachment completed;

	if (!conflist_version_reaches(attachment->list, CHECK_SINCE))
		return cni_error_set(err, CNI_ERROR_INCOMPATIBLE_VERSION,
				     "configuration version \"%s\" does not support the CHECK "
				     "command",
				     attachment->list->version);
	if (attachment->list->disable_check)
		return 0;
	if (attachment_validate(attachment, err) || read_cache(attachment, &entry, err) ||
	    result_of_cache(attachment, &entry, &prev_result, err))
		return -1;
	if (!prev_result)
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "no cached result %s: container \"%s\" was never added to "
				     "network \"%s\" as %s",
				     entry.path, attachment->container_id, attachment->list->name,
				     attachment->ifname);
	completed = complete(attachment, &entry);
	return check_in_order(&completed, prev_result, err);
}
