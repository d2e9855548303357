/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * verb_plugins.c - status and version: questions to each plugin of a list.
 */
#include <string.h>

#include "cni/cleanup.h"
#include "cni/json.h"
#include "cni/version.h"
#include "cnirun/conflist.h"
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

	return request ? invoke_for_network(list, plugin, "STATUS", options->cni_path, request, err)
		       : -1;
}

int verb_status(const struct options *options, struct cni_error *err)
{
	cleanup_conflist struct conflist list = {0};
	const json_t *plugin;
	size_t index;

	if (conflist_find(&list, options->conflist, err))
		return -1;
	if (!conflist_version_reaches(&list, STATUS_SINCE))
		return 0;
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

static void print_versions(const char *type, const json_t *versions, const char *wanted)
{
	const json_t *version;
	size_t index;

	output_text("%-20s %-7s", type, speaks(versions, wanted) ? "yes" : "no");
	json_array_foreach (versions, index, version) {
		if (json_is_string(version))
			output_text(" %s", json_string_value(version));
	}
	output_text("\n");
}

static int ask_version(const struct conflist *list, const struct options *options,
		       const json_t *plugin, const char *wanted, struct cni_error *err)
{
	cleanup_json json_t *answer = invoke_version(list, plugin, options->cni_path, err);
	json_t *versions = NULL;

	if (!answer || cni_json_get_array(answer, "supportedVersions", &versions, err))
		return -1;
	print_versions(plugin_type(plugin), versions, wanted);
	return 0;
}

int verb_version(const struct options *options, struct cni_error *err)
{
	cleanup_conflist struct conflist list = {0};
	const char *wanted;
	const json_t *plugin;
	size_t index;

	if (conflist_find(&list, options->conflist, err))
		return -1;
	wanted = *list.version ? list.version : CNI_VERSION_OLDEST;
	output_text("%-20s %-7s VERSIONS\n", "PLUGIN", wanted);
	json_array_foreach (list.plugins, index, plugin) {
		if (ask_version(&list, options, plugin, wanted, err))
			return -1;
	}
	return output_flush(err);
}
