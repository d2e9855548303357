/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conflist.c - finds a conflist and reads it: its name, switches, version and plugins.
 *
 * As in libcni, a conflist's own keys must match exactly; the keys of a plugin match without regard
 * to case.
 */
#include "runtimes/cnirun/conflist.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/cleanup.h"
#include "lib/memory.h"
#include "cni/conflist.h"
#include "cni/environment.h"
#include "lib/json.h"
#include "lib/text.h"
#include "cni/version.h"
#include "runtimes/cnirun/directory.h"

#define DEFAULT_DIRECTORY "/etc/cni/net.d"

static const char *const list_suffixes[] = {".conflist", NULL};
static const char *const plugin_suffixes[] = {".conf", ".json", NULL};

/* `value`: NULL where the key is missing. */
static int set_key_error(const char *key, const char *wanted, const json_t *value,
			 struct cni_error *err)
{
	char found[CNI_JSON_DESCRIPTION_SIZE];

	if (!value)
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION, "no \"%s\": %s", key,
				     wanted);
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION, "\"%s\": %s, not %s", key,
			     wanted, cni_json_describe(value, found));
}

static int read_name(struct conflist *list, const json_t *root, struct cni_error *err)
{
	const json_t *name = json_object_get(root, "name");

	if (!json_is_string(name))
		return set_key_error("name", "the network's name must be a string", name, err);
	if (cni_validate_network_name(json_string_value(name), err))
		return -1;
	list->name = or_exit(strdup(json_string_value(name)));
	return 0;
}

/* JSON booleans, or "true" and "false" in any case, which early conflists have. */
static int read_switch(const json_t *root, const char *key, bool *value, struct cni_error *err)
{
	const json_t *json = json_object_get(root, key);
	const char *text = json_string_value(json);

	if (!json)
		return 0;
	if (json_is_boolean(json))
		*value = json_is_true(json);
	else if (text && !strcasecmp(text, "true"))
		*value = true;
	else if (text && !strcasecmp(text, "false"))
		*value = false;
	else
		return set_key_error(key, "must be true or false", json, err);
	return 0;
}

/* Keeps the newer of the two, unless it is newer than the newest version that we know. */
static int prefer_version(const char **best, const char *candidate, struct cni_error *err)
{
	if (cni_version_validate(candidate, err))
		return -1;
	if (!version_is_older(CNI_VERSION_NEWEST, candidate) &&
	    (!*best || version_is_older(*best, candidate)))
		*best = candidate;
	return 0;
}

static int read_version(struct conflist *list, const json_t *root, struct cni_error *err)
{
	const json_t *element, *lone = json_object_get(root, "cniVersion");
	const json_t *versions = json_object_get(root, "cniVersions");
	const char *best = NULL, *version = lone ? json_string_value(lone) : "";
	size_t index;

	if (!version)
		return set_key_error("cniVersion", "must be a string", lone, err);
	if (versions && !json_is_array(versions))
		return set_key_error("cniVersions", "must be an array", versions, err);
	if (*version && cni_version_validate(version, err))
		return -1;
	json_array_foreach (versions, index, element) {
		if (!json_is_string(element))
			return set_key_error("cniVersions", "must be strings", element, err);
		if (prefer_version(&best, json_string_value(element), err))
			return -1;
	}
	/* A cniVersion alone is sent as it is, even if it is too new: the plugins answer to it. */
	if (best && *version && prefer_version(&best, version, err))
		return -1;
	list->version = or_exit(strdup(best ? best : version));
	return 0;
}

static int validate_plugin(const json_t *plugin, struct cni_error *err)
{
	const json_t *type, *capabilities;
	const char *name;
	json_t *value;

	if (!json_is_object(plugin))
		return set_key_error("plugins", "a plugin must be an object", plugin, err);
	type = cni_json_get(plugin, "type");
	if (!json_is_string(type) || !json_string_length(type))
		return set_key_error("type", "a plugin's type must be the name of its file", type,
				     err);
	capabilities = cni_json_get(plugin, "capabilities");
	if (capabilities && !json_is_object(capabilities))
		return set_key_error("capabilities", "must be an object", capabilities, err);
	json_object_foreach ((json_t *)capabilities, name, value)
		if (!json_is_boolean(value) && !json_is_null(value))
			return set_key_error(name, "a capability must be true or false", value,
					     err);
	return 0;
}

/* A plugin's own file, which is not a conflist. */
static int validate_lone_plugin(const json_t *plugin, struct cni_error *err)
{
	if (!cni_json_get(plugin, "type") && json_object_get(plugin, "plugins"))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "it has \"plugins\" and no \"type\", so it is a conflist: "
				     "name it *.conflist");
	return validate_plugin(plugin, err);
}

static int append_plugin(struct conflist *list, json_t *plugin, struct cni_error *err)
{
	if (validate_plugin(plugin, err))
		return -1;
	return json_array_append(list->plugins, plugin);
}

static int read_plugins(struct conflist *list, const json_t *root, struct cni_error *err)
{
	const json_t *plugins = json_object_get(root, "plugins");
	json_t *plugin;
	size_t index;

	if (plugins && !json_is_array(plugins))
		return set_key_error("plugins", "must be an array", plugins, err);
	if (plugins && !json_array_size(plugins))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION, "\"plugins\" is empty");
	json_array_foreach (plugins, index, plugin)
		if (append_plugin(list, plugin, err))
			return -1;
	return 0;
}

/* The folder beside the conflist that is named as the network (CNI 1.1.0). */
static int append_plugin_folder(struct conflist *list, const char *directory, struct cni_error *err)
{
	static const char *const suffixes[] = {".conf", NULL};
	cleanup_free char *path = cni_format("%s/%s", directory, list->name);
	cleanup_directory struct directory folder = {0};

	if (directory_list(&folder, path, suffixes, err))
		return -1;
	for (size_t i = 0; i < folder.count; i++) {
		size_t length;
		cleanup_free char *text = directory_read_file(folder.paths[i], &length, err);
		cleanup_json json_t *plugin =
			text ? cni_json_parse_object(text, length, folder.paths[i], err) : NULL;

		if (!plugin)
			return -1;
		if (append_plugin(list, plugin, err))
			return cni_error_wrap(err, "%s", folder.paths[i]);
	}
	return 0;
}

int conflist_read(struct conflist *list, const json_t *root, const char *directory,
		  const char *what, struct cni_error *err)
{
	bool only_inlined = false;

	list->plugins = json_array();
	if (read_name(list, root, err) || read_version(list, root, err) ||
	    read_switch(root, "disableCheck", &list->disable_check, err) ||
	    read_switch(root, "disableGC", &list->disable_gc, err) ||
	    read_switch(root, "loadOnlyInlinedPlugins", &only_inlined, err) ||
	    read_plugins(list, root, err))
		return cni_error_wrap(err, "%s", what);
	if (!only_inlined && directory && append_plugin_folder(list, directory, err))
		return -1;
	if (!json_array_size(list->plugins))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "%s: no plugins: \"plugins\" is missing%s", what,
				     only_inlined ? " and loadOnlyInlinedPlugins is true"
						  : " and no folder of the network has any");
	return 0;
}

int conflist_wrap(struct conflist *list, json_t *plugin, const char *what, struct cni_error *err)
{
	cleanup_json json_t *root = NULL;

	if (validate_lone_plugin(plugin, err))
		return cni_error_wrap(err, "%s", what);
	root = json_pack("{s:[O], s:O*, s:O*}", "plugins", plugin, "name",
			 cni_json_get(plugin, "name"), "cniVersion",
			 cni_json_get(plugin, "cniVersion"));
	free(list->text);
	list->text = json_dumps(root, JSON_COMPACT);
	list->length = strlen(list->text);
	return conflist_read(list, root, NULL, what, err);
}

static int read_list(struct conflist *list, const json_t *root, const char *path,
		     struct cni_error *err)
{
	const char *slash = strrchr(path, '/');
	cleanup_free char *directory = or_exit(
		slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup("."));

	return conflist_read(list, root, directory, path, err);
}

static int read_path(struct conflist *list, const char *path, struct cni_error *err)
{
	cleanup_json json_t *root = NULL;

	list->text = directory_read_any(path, &list->length, err);
	root = list->text ? cni_json_parse_object(list->text, list->length, path, err) : NULL;
	if (!root)
		return -1;
	/* The suffix .json is common for conflists, too, so the keys decide. */
	return has_suffix(path, list_suffixes) ||
			       (json_object_get(root, "plugins") && !cni_json_get(root, "type"))
		       ? read_list(list, root, path, err)
		       : conflist_wrap(list, root, path, err);
}

/* list->name stays NULL for a plugin of another network. */
static int read_candidate(struct conflist *list, const char *path, const char *wanted,
			  struct cni_error *err)
{
	cleanup_json json_t *root = NULL;
	const char *name = "";

	list->text = directory_read_file(path, &list->length, err);
	root = list->text ? cni_json_parse_object(list->text, list->length, path, err) : NULL;
	if (!root)
		return -1;
	if (has_suffix(path, list_suffixes))
		return read_list(list, root, path, err);
	/* Of another network's plugin, only its type and name are examined, as in libcni. */
	if (validate_lone_plugin(root, err) || cni_json_get_string(root, "name", &name, err))
		return cni_error_wrap(err, "%s", path);
	return strcmp(name, wanted) ? 0 : conflist_wrap(list, root, path, err);
}

static int search_directory(struct conflist *list, const char *directory, const char *wanted,
			    const char *const *suffixes, struct cni_error *err)
{
	cleanup_directory struct directory files = {0};

	if (directory_list(&files, directory, suffixes, err))
		return -1;
	for (size_t i = 0; i < files.count; i++) {
		if (read_candidate(list, files.paths[i], wanted, err))
			return -1;
		if (list->name && !strcmp(list->name, wanted))
			return 0;
		conflist_release(list);
	}
	return 0;
}

const char *conflist_directory(void)
{
	const char *directory = getenv("NETCONFPATH");

	return directory && *directory ? directory : DEFAULT_DIRECTORY;
}

int conflist_find(struct conflist *list, const char *path_or_name, struct cni_error *err)
{
	const char *directory = conflist_directory();

	if (strchr(path_or_name, '/') || has_suffix(path_or_name, list_suffixes) ||
	    has_suffix(path_or_name, plugin_suffixes))
		return read_path(list, path_or_name, err);
	if (search_directory(list, directory, path_or_name, list_suffixes, err) ||
	    (!list->name && search_directory(list, directory, path_or_name, plugin_suffixes, err)))
		return -1;
	if (list->name)
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "no network named \"%s\" in %s: give the path of its .conflist, or "
			     "set NETCONFPATH to its directory",
			     path_or_name, directory);
}

bool conflist_version_reaches(const struct conflist *list, const char *version)
{
	return !version_is_older(*list->version ? list->version : CNI_VERSION_OLDEST, version);
}

bool conflist_has_capability(const struct conflist *list, const char *capability)
{
	const json_t *plugin;
	size_t index;

	json_array_foreach (list->plugins, index, plugin)
		if (plugin_has_capability(plugin, capability))
			return true;
	return false;
}

void conflist_release(struct conflist *list)
{
	free(list->name);
	free(list->version);
	json_decref(list->plugins);
	free(list->text);
	*list = (struct conflist){0};
}
