/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * network_config.c - the configuration on stdin: name, version, prevResult.
 */
#include "cni/network_config.h"

#include "cni/json.h"
#include "cni/version.h"

#define WHAT "the network configuration on stdin"

/* The version is judged last, but an error that comes before it is printed with it. */
static void peek_version(struct cni_network_config *config)
{
	const json_t *found = cni_json_get(config->root, "cniVersion");
	const char *version = found ? json_string_value(found) : CNI_VERSION_OLDEST;

	if (version && !*version)
		version = CNI_VERSION_OLDEST;
	if (version && cni_version_is_supported(version))
		config->version = version;
}

static int check_version(const json_t *root, enum cni_command command, struct cni_error *err)
{
	const char *version = "";

	if (cni_json_get_string(root, "cniVersion", &version, err))
		return -1;
	return cni_version_check(command, *version ? version : CNI_VERSION_OLDEST, err);
}

static int parse_root(struct cni_network_config *config, const char *text, size_t length,
		      struct cni_error *err)
{
	char found[CNI_JSON_DESCRIPTION_SIZE];

	config->root = cni_json_parse(text, length, WHAT, err);
	if (!config->root)
		return -1;
	/* Go decodes null into an empty configuration: what it lacks is the name. */
	if (json_is_null(config->root))
		return cni_validate_network_name("", err);
	if (!json_is_object(config->root))
		return cni_error_set(err, CNI_ERROR_DECODE, WHAT " must be a JSON object, found %s",
				     cni_json_describe(config->root, found));
	return 0;
}

int cni_network_config_parse(struct cni_network_config *config, const char *text, size_t length,
			     const struct cni_environment *environment, struct cni_error *err)
{
	*config = (struct cni_network_config){.name = ""};
	if (parse_root(config, text, length, err))
		return -1;
	peek_version(config);
	if (cni_json_get_string(config->root, "name", &config->name, err))
		return cni_error_wrap(err, WHAT);
	if (cni_validate_network_name(config->name, err))
		return -1;
	if (environment->command == CNI_UNKNOWN_COMMAND)
		return cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT, "unknown CNI_COMMAND: %s",
				     environment->command_name);
	return check_version(config->root, environment->command, err);
}

void cni_network_config_release(struct cni_network_config *config)
{
	json_decref(config->root);
	*config = (struct cni_network_config){0};
}

const char *cni_network_config_reply_version(const struct cni_network_config *config)
{
	return config->version ? config->version : CNI_VERSION_NEWEST;
}

int cni_network_config_get_prev_result(const struct cni_network_config *config,
				       json_t **prev_result, struct cni_error *err)
{
	json_t *found = NULL;

	if (cni_json_get_object(config->root, "prevResult", &found, err))
		return -1;
	if (!found)
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "prevResult is missing: this plugin is chained and must come "
				     "after one that makes the interface, such as bridge or ptp");
	*prev_result = found;
	return 0;
}
