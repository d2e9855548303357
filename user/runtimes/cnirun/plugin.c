/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* plugin.c - an operation of a plugin: what it finds on stdin, and what its answer means. */
#include "runtimes/cnirun/plugin.h"

#include <string.h>

#include "lib/cleanup.h"
#include "cni/cache.h"
#include "cni/execute.h"
#include "lib/json.h"
#include "cni/result.h"
#include "cni/version.h"
#include "runtimes/cnirun/output.h"

/* `value`: NULL leaves the key as it is. */
static void set_if_given(json_t *request, const char *key, json_t *value)
{
	if (value)
		cni_json_set_new(request, key, json_incref(value));
}

json_t *plugin_compose_request(const struct operation *operation, const json_t *plugin,
			       json_t *prev_result)
{
	/* A shallow copy, as only keys of the top level are set. */
	json_t *request = json_copy((json_t *)plugin);
	cleanup_json json_t *declared = json_object();
	const char *capability;
	json_t *value;

	json_object_foreach (operation->conf->capability_args, capability, value)
		if (plugin_has_capability(plugin, capability))
			json_object_set(declared, capability, value);
	cni_json_set_new(request, "name", json_string(operation->list->name));
	cni_json_set_new(request, "cniVersion", json_string(operation->list->version));
	set_if_given(request, "prevResult", prev_result);
	set_if_given(request, "runtimeConfig", json_object_size(declared) ? declared : NULL);
	/* cni.dev/attachments is the key of the specification's first drafts; libcni sends both. */
	set_if_given(request, "cni.dev/valid-attachments", operation->valid_attachments);
	set_if_given(request, "cni.dev/attachments", operation->valid_attachments);
	return request;
}

/* In libcni's words. */
static int name_plugin(const struct operation *operation, const json_t *plugin,
		       struct cni_error *err)
{
	static const char *const words[][2] = {{"ADD", "add"},       {"DEL", "delete"},
					       {"CHECK", "check"},   {"GC", "gc"},
					       {"STATUS", "status"}, {"VERSION", "version"}};
	const char *word = operation->command;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!strcmp(words[i][0], operation->command))
			word = words[i][1];
	}
	return cni_error_wrap(err, "plugin type=\"%s\" name=\"%s\" failed (%s)",
			      plugin_type(plugin), operation->list->name, word);
}

static int run_plugin_file(const struct operation *operation, const json_t *plugin,
			   const json_t *request, struct execute_output *output,
			   struct cni_error *err)
{
	const struct runtime_conf *conf = operation->conf;
	cleanup_free char *input = json_dumps(request, JSON_COMPACT);
	cleanup_free char *args = cni_cache_format_args(conf->args);
	cleanup_free char *file = execute_find(plugin_type(plugin), conf->plugin_path, err);
	const char *const variables[][2] = {
		{"CNI_COMMAND", operation->command},
		{"CNI_CONTAINERID", conf->container_id},
		{"CNI_NETNS", conf->netns},
		{"CNI_IFNAME", conf->ifname},
		{"CNI_ARGS", args},
		{"CNI_PATH", conf->plugin_path},
		{0},
	};
	const struct execution execution = {variables, input, conf->timeout, conf->longer};

	if (!file || execute_run(file, &execution, output, err))
		return -1;
	if (output->is_held_open)
		output_warn("%s has left a process that keeps its stdout open: not waited for",
			    file);
	return execute_check(output, err);
}

static json_t *parse_result(const struct execute_output *output, const struct conflist *list,
			    struct cni_error *err)
{
	cleanup_json json_t *result = NULL;
	const char *version;

	if (!output->length)
		return cni_error_null(err, CNI_ERROR_DECODE,
				      "succeeded, but with no result on stdout");
	result = cni_json_parse(output->text, output->length, "its result on stdout", err);
	if (!result)
		return NULL;
	if (json_is_null(result)) {
		json_decref(result);
		result = json_object();
	}
	if (!json_is_object(result))
		return cni_error_null(err, CNI_ERROR_DECODE,
				      "its result on stdout is not an object");
	version = json_string_value(cni_json_get(result, "cniVersion"));
	/* A result without cniVersion has that of the conflist. */
	if (!version || !*version) {
		version = *list->version ? list->version : CNI_VERSION_OLDEST;
		cni_json_set_new(result, "cniVersion", json_string(version));
	}
	if (!cni_version_is_supported(version))
		return cni_error_null(
			err, CNI_ERROR_INCOMPATIBLE_VERSION,
			"its result is of version \"%s\", which is none that cnirun knows "
			"(%s to %s)",
			version, CNI_VERSION_OLDEST, CNI_VERSION_NEWEST);
	if (cni_result_validate(result, version, err)) {
		cni_error_wrap(err, "its result on stdout");
		return NULL;
	}
	return TAKE(result);
}

int plugin_run(const struct operation *operation, const json_t *plugin, json_t *prev_result,
	       json_t **result, struct cni_error *err)
{
	cleanup_execute_output struct execute_output output = {0};
	cleanup_json json_t *request = plugin_compose_request(operation, plugin, prev_result);
	int failed = run_plugin_file(operation, plugin, request, &output, err);

	if (!failed && result) {
		*result = parse_result(&output, operation->list, err);
		failed = !*result;
	}
	return failed ? name_plugin(operation, plugin, err) : 0;
}

int plugin_run_all(const struct operation *operation, json_t *prev_result, json_t **result,
		   struct cni_error *err)
{
	const json_t *plugins = operation->list->plugins;
	bool reverse = !strcmp(operation->command, "DEL");
	size_t count = json_array_size(plugins);
	int failed = 0;

	for (size_t i = 0; i < count && (!failed || operation->goes_on); i++) {
		const json_t *plugin = json_array_get(plugins, reverse ? count - 1 - i : i);
		struct cni_error problem = {0};
		json_t *answer = NULL;

		if (plugin_run(operation, plugin, prev_result, result ? &answer : NULL, &problem)) {
			if (operation->when)
				cni_error_wrap(&problem, "%s", operation->when);
			cni_error_join(err, &problem);
			failed = -1;
		} else if (result) {
			json_decref(*result);
			*result = prev_result = answer;
		}
	}
	return failed;
}

json_t *plugin_ask_versions(const struct conflist *list, const struct runtime_conf *conf,
			    const json_t *plugin, struct cni_error *err)
{
	/* libcni's values: plugins before CNI 0.3 demanded them for VERSION, too. */
	struct runtime_conf dummy = plugin_conf_of_network(conf);
	const struct operation operation = {.command = "VERSION", .list = list, .conf = &dummy};
	cleanup_execute_output struct execute_output output = {0};
	cleanup_json json_t *request = json_pack("{s:s}", "cniVersion", CNI_VERSION_NEWEST);
	cleanup_json json_t *answer = NULL;
	json_t *versions = NULL;

	dummy.netns = dummy.ifname = "dummy";
	if (!run_plugin_file(&operation, plugin, request, &output, err))
		answer = cni_json_parse_object(output.text, output.length, "its answer on stdout",
					       err);
	if (!answer || cni_json_get_array(answer, "supportedVersions", &versions, err)) {
		name_plugin(&operation, plugin, err);
		return NULL;
	}
	return versions ? json_incref(versions) : json_array();
}

int plugin_find_all(const struct operation *operation, struct cni_error *err)
{
	const json_t *plugin;
	size_t index;

	json_array_foreach (operation->list->plugins, index, plugin) {
		cleanup_free char *file =
			execute_find(plugin_type(plugin), operation->conf->plugin_path, err);

		if (!file)
			return name_plugin(operation, plugin, err);
	}
	return 0;
}

struct runtime_conf plugin_conf_of_network(const struct runtime_conf *conf)
{
	struct runtime_conf names_none = *conf;

	names_none.container_id = names_none.netns = names_none.ifname = "";
	return names_none;
}
