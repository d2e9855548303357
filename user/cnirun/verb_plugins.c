/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * verb_plugins.c - status and version: questions to each plugin of a list.
 */
#include <string.h>

#include "cni/cleanup.h"
#include "cni/json.h"
#include "cni/version.h"
#include "cnirun/conflist.h"
#include "cnirun/errors.h"
#include "cnirun/execute.h"
#include "cnirun/invoke.h"
#include "cnirun/output.h"
#include "cnirun/request.h"
#include "cnirun/verbs.h"

#define cleanup_conflist __attribute__((cleanup(conflist_release)))
#define STATUS_SINCE "1.1.0"

static int ask_status(const struct conflist *list, const struct options *options,
		      const json_t *plugin, struct cni_error *err)
{
	cleanup_json json_t *request = request_compose(list, plugin, NULL, NULL, err);

	return request ? invoke_for_network(list, plugin, "STATUS", &options->execution, request,
					    err)
		       : -1;
}

int verb_status(const struct options *options, struct cni_error *err)
{
	cleanup_conflist struct conflist list = {0};
	const json_t *plugin;
	size_t index;

	if (conflist_find(&list, options->conflist, err))
		return -1;
	/* libcni asks nobody either, and calls that success. */
	if (!conflist_version_reaches(&list, STATUS_SINCE)) {
		output_warn("conflist \"%s\" has %s%s: plugins cannot be asked (" STATUS_SINCE
			    " needed)",
			    list.name, *list.version ? "cniVersion " : "no cniVersion",
			    list.version);
		return 0;
	}
	json_array_foreach (list.plugins, index, plugin) {
		if (ask_status(&list, options, plugin, err))
			return -1;
	}
	return 0;
}

static bool speaks(const json_t *versions, const char *wanted)
{
	const json_t *version;
	size_t index;

	json_array_foreach (versions, index, version) {
		if (json_is_string(version) && !strcmp(json_string_value(version), wanted))
			return true;
	}
	return false;
}

/* `versions` is NULL for a plugin that did not say. */
static void print_versions(const char *type, const json_t *versions, const char *wanted)
{
	const json_t *version;
	size_t index;

	if (!versions) {
		output_text("%-20s ?\n", type);
		return;
	}
	output_text("%-20s %-7s", type, speaks(versions, wanted) ? "yes" : "no");
	json_array_foreach (versions, index, version) {
		if (json_is_string(version))
			output_text(" %s", json_string_value(version));
	}
	output_text("\n");
}

/* The others are asked though one fails: *all gets its error. */
static void ask_version(const struct conflist *list, const struct options *options,
			const json_t *plugin, const char *wanted, struct cni_error *all)
{
	struct cni_error problem = {0};
	cleanup_json json_t *versions = invoke_version(list, plugin, &options->execution, &problem);

	print_versions(plugin_type(plugin), versions, wanted);
	if (!versions)
		errors_join(all, &problem);
}

int verb_version(const struct options *options, struct cni_error *err)
{
	cleanup_conflist struct conflist list = {0};
	struct cni_error all = {0};
	const char *wanted;
	const json_t *plugin;
	size_t index;

	if (conflist_find(&list, options->conflist, err))
		return -1;
	wanted = *list.version ? list.version : CNI_VERSION_OLDEST;
	output_text("%-20s %-7s VERSIONS\n", "PLUGIN", wanted);
	json_array_foreach (list.plugins, index, plugin)
		ask_version(&list, options, plugin, wanted, &all);
	if (!all.message)
		return output_flush(err);
	*err = all;
	return -1;
}
