/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * invoke.c - one operation of one plugin, and what its answer means.
 */
#define _GNU_SOURCE
#include "cnirun/invoke.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "cni/cleanup.h"
#include "cni/json.h"
#include "cni/version.h"
#include "cnirun/result_validate.h"

#define QUOTED_OUTPUT 200

static void release_output(struct execute_output *output)
{
	execute_release(output);
}

#define cleanup_output __attribute__((cleanup(release_output)))

/* libcni's words for the operations. */
static const char *operation_name(const char *command)
{
	static const char *const names[][2] = {{"ADD", "add"},       {"DEL", "delete"},
					       {"CHECK", "check"},   {"GC", "gc"},
					       {"STATUS", "status"}, {"VERSION", "version"}};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(names[i][0], command))
			return names[i][1];
	}
	return command;
}

static int name_plugin(const struct conflist *list, const json_t *plugin, const char *command,
		       struct cni_error *err)
{
	return cni_error_wrap(err, "plugin type=\"%s\" name=\"%s\" failed (%s)",
			      plugin_type(plugin), list->name, operation_name(command));
}

static int report_silence(int status, struct cni_error *err)
{
	if (WIFSIGNALED(status))
		return cni_error_set(err, CNI_ERROR_IO,
				     "killed by signal %d (%s) with no error message",
				     WTERMSIG(status), strsignal(WTERMSIG(status)));
	return cni_error_set(err, CNI_ERROR_IO,
			     "exit status %d with no error message on stdout (stderr, above, may "
			     "tell why)",
			     WEXITSTATUS(status));
}

/* The plugin's error object; where it printed something else, that is quoted. */
static int report_failure(const struct execute_output *output, struct cni_error *err)
{
	struct cni_error ignored = {0};
	cleanup_json json_t *root = NULL;
	const char *message;
	const char *details;

	if (!output->length)
		return report_silence(output->status, err);
	root = cni_json_parse_object(output->text, output->length, "stdout", &ignored);
	cni_error_release(&ignored);
	message = json_string_value(cni_json_get(root, "msg"));
	details = json_string_value(cni_json_get(root, "details"));
	if (!message || !*message)
		return cni_error_set(err, CNI_ERROR_DECODE,
				     "its error on stdout is no CNI error: \"%.*s\"", QUOTED_OUTPUT,
				     output->text);
	cni_error_set(err, (int)json_integer_value(cni_json_get(root, "code")), "%s", message);
	return details && *details ? cni_error_set_details(err, "%s", details) : -1;
}

static int execute(const json_t *plugin, const struct execute_environment *environment,
		   const json_t *request, const struct execution *execution,
		   struct execute_output *output, struct cni_error *err)
{
	cleanup_free char *text = json_dumps(request, JSON_COMPACT);
	cleanup_free char *file = NULL;

	if (!text)
		return cni_error_no_memory(err);
	file = execute_find(plugin_type(plugin), execution->path, err);
	if (!file ||
	    execute_run(file, environment, execution->timeout, text, strlen(text), output, err))
		return -1;
	if (!WIFEXITED(output->status) || WEXITSTATUS(output->status))
		return report_failure(output, err);
	return 0;
}

/* A result without cniVersion has that of the configuration. */
static int complete_version(json_t *result, const struct conflist *list, struct cni_error *err)
{
	const char *version = json_string_value(cni_json_get(result, "cniVersion"));

	if (!version || !*version) {
		version = *list->version ? list->version : CNI_VERSION_OLDEST;
		if (cni_json_set_new(result, "cniVersion", json_string(version), err))
			return -1;
	}
	if (cni_version_is_supported(version))
		return 0;
	return cni_error_set(err, CNI_ERROR_INCOMPATIBLE_VERSION,
			     "its result is of version \"%s\", which is none that cnirun knows "
			     "(%s to %s)",
			     version, CNI_VERSION_OLDEST, CNI_VERSION_NEWEST);
}

static json_t *parse_result(const struct execute_output *output, const struct conflist *list,
			    struct cni_error *err)
{
	cleanup_json json_t *result = NULL;

	if (!output->length) {
		cni_error_set(err, CNI_ERROR_DECODE, "succeeded, but with no result on stdout");
		return NULL;
	}
	result = cni_json_parse(output->text, output->length, "its result on stdout", err);
	if (!result)
		return NULL;
	if (json_is_null(result)) {
		json_decref(result);
		result = json_object();
	}
	if (!json_is_object(result)) {
		cni_error_set(err, CNI_ERROR_DECODE, "its result on stdout is not an object");
		return NULL;
	}
	if (complete_version(result, list, err))
		return NULL;
	if (result_validate(result, json_string_value(cni_json_get(result, "cniVersion")), err)) {
		cni_error_wrap(err, "its result on stdout");
		return NULL;
	}
	return TAKE(result);
}

int invoke_plugin(const struct conflist *list, const json_t *plugin,
		  const struct execute_environment *environment, const struct execution *execution,
		  const json_t *request, json_t **result, struct cni_error *err)
{
	cleanup_output struct execute_output output = {0};
	int failed;

	failed = execute(plugin, environment, request, execution, &output, err);
	if (!failed && result) {
		*result = parse_result(&output, list, err);
		failed = *result ? 0 : -1;
	}
	return failed ? name_plugin(list, plugin, environment->command, err) : 0;
}

int invoke_for_network(const struct conflist *list, const json_t *plugin, const char *command,
		       const struct execution *execution, const json_t *request,
		       struct cni_error *err)
{
	const struct execute_environment environment = {
		.command = command,
		.container_id = "",
		.netns = "",
		.ifname = "",
		.args = "",
		.path = execution->path,
	};

	return invoke_plugin(list, plugin, &environment, execution, request, NULL, err);
}

/* An array, empty where the answer has none. */
static json_t *parse_versions(const struct execute_output *output, struct cni_error *err)
{
	cleanup_json json_t *answer = cni_json_parse_object(
		output->text ? output->text : "", output->length, "its answer on stdout", err);
	json_t *versions = NULL;

	if (!answer || cni_json_get_array(answer, "supportedVersions", &versions, err))
		return NULL;
	versions = versions ? json_incref(versions) : json_array();
	if (!versions)
		cni_error_no_memory(err);
	return versions;
}

json_t *invoke_version(const struct conflist *list, const json_t *plugin,
		       const struct execution *execution, struct cni_error *err)
{
	/* libcni's values: plugins before 0.3 demanded them for VERSION too. */
	static const struct execute_environment dummy = {
		.command = "VERSION",
		.container_id = "",
		.netns = "dummy",
		.ifname = "dummy",
		.args = "",
		.path = "dummy",
	};
	cleanup_output struct execute_output output = {0};
	cleanup_json json_t *request = json_pack("{s:s}", "cniVersion", CNI_VERSION_NEWEST);
	json_t *versions = NULL;

	if (!request)
		cni_error_no_memory(err);
	else if (!execute(plugin, &dummy, request, execution, &output, err))
		versions = parse_versions(&output, err);
	if (!versions)
		name_plugin(list, plugin, "VERSION", err);
	return versions;
}

int invoke_find_all(const struct conflist *list, const char *path, struct cni_error *err)
{
	const json_t *plugin;
	size_t index;

	json_array_foreach (list->plugins, index, plugin) {
		cleanup_free char *file = execute_find(plugin_type(plugin), path, err);

		if (!file)
			return name_plugin(list, plugin, "ADD", err);
	}
	return 0;
}
