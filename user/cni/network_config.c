/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* network_config.c - the configuration on stdin: name, version, prevResult, attachments to keep. */
#include "cni/network_config.h"

#include <string.h>
#include <strings.h>

#include "lib/cleanup.h"
#include "lib/text.h"
#include "lib/json.h"
#include "cni/version.h"

#define WHAT "the network configuration on stdin"

int cni_network_config_parse(struct cni_network_config *config, const char *text, size_t length,
			     const struct cni_environment *environment, struct cni_error *err)
{
	char found[CNI_JSON_DESCRIPTION_SIZE];
	const json_t *given;
	const char *version = "";

	*config = (struct cni_network_config){.text = text, .name = ""};
	config->root = cni_json_parse(text, length, WHAT, err);
	if (!config->root)
		return -1;
	/* Go decodes null into an empty configuration, of which it says that the name is missing.
	 */
	if (json_is_null(config->root))
		return cni_validate_network_name("", err);
	if (!json_is_object(config->root))
		return cni_error_set(err, CNI_ERROR_DECODE, WHAT " must be a JSON object, found %s",
				     cni_json_describe(config->root, found));
	/* The version is checked last, but an earlier error is printed with the version, too. */
	given = cni_json_get(config->root, "cniVersion");
	if (!given || json_is_string(given))
		version = json_string_length(given) ? json_string_value(given) : CNI_VERSION_OLDEST;
	if (cni_version_is_supported(version))
		config->version = version;
	if (cni_json_get_string(config->root, "name", &config->name, err))
		return cni_error_wrap(err, WHAT);
	if (cni_validate_network_name(config->name, err))
		return -1;
	if (environment->command == CNI_UNKNOWN_COMMAND)
		return cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT, "unknown CNI_COMMAND: %s",
				     environment->command_name);
	if (cni_json_get_string(config->root, "cniVersion", &version, err))
		return -1;
	return cni_version_check(environment->command, *version ? version : CNI_VERSION_OLDEST,
				 err);
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

/* Unlike cni_json_get(), sees a key that is null. */
static bool has_key(const json_t *config, const char *key)
{
	const char *candidate;
	json_t *value;

	json_object_foreach ((json_t *)config, candidate, value)
		if (!strcasecmp(candidate, key))
			return true;
	return false;
}

/* A key of the object, as no valid name has a blank. malloc'ed. */
static char *name_attachment(const char *container_id, const char *ifname)
{
	return cni_format("%s %s", container_id, ifname);
}

static int read_attachment(const json_t *entry, void *context, struct cni_error *err)
{
	const char *container_id = "", *ifname = "";
	cleanup_free char *name = NULL;

	if (cni_json_get_string(entry, "containerID", &container_id, err) ||
	    cni_json_get_string(entry, "ifname", &ifname, err))
		return -1;
	/* Half an entry would keep nothing, and GC would delete the attachment. */
	if (!*container_id || !*ifname)
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "it needs a \"containerID\" and an \"ifname\"");
	name = name_attachment(container_id, ifname);
	return json_object_set_new(context, name, json_true());
}

int cni_attachments_read(json_t **valid, const json_t *config, struct cni_error *err)
{
	const char *key = "cni.dev/valid-attachments";

	if (!has_key(config, key))
		key = "cni.dev/attachments";
	*valid = has_key(config, key) ? json_object() : NULL;
	return cni_json_each_object(config, key, read_attachment, *valid, err);
}

bool cni_attachments_have(const json_t *valid, const char *container_id, const char *ifname)
{
	cleanup_free char *name = name_attachment(container_id, ifname);

	return json_object_get(valid, name);
}
