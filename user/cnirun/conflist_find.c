/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conflist_find.c - finds a conflist by its path or by the network's name.
 */
#include "cnirun/conflist_find.h"

#include <stdlib.h>
#include <string.h>

#include "lib/cleanup.h"
#include "cni/json.h"
#include "cnirun/directory.h"

#define DEFAULT_DIRECTORY "/etc/cni/net.d"

static const char *const list_suffixes[] = {".conflist", NULL};
static const char *const plugin_suffixes[] = {".conf", ".json", NULL};

static int read_list(struct conflist *list, const json_t *root, const char *path,
		     struct cni_error *err)
{
	const char *slash = strrchr(path, '/');
	cleanup_free char *directory =
		slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");

	if (!directory)
		return cni_error_no_memory(err);
	return conflist_read(list, root, directory, path, err);
}

/* The suffix .json is common for conflists, too, so the keys decide. */
static bool is_list(const json_t *root)
{
	return json_object_get(root, "plugins") && !cni_json_get(root, "type");
}

static int read_path(struct conflist *list, const char *path, struct cni_error *err)
{
	cleanup_json json_t *root = NULL;

	list->text = directory_read_any(path, &list->length, err);
	if (!list->text)
		return -1;
	root = cni_json_parse_object(list->text, list->length, path, err);
	if (!root)
		return -1;
	return has_suffix(path, list_suffixes) || is_list(root)
		       ? read_list(list, root, path, err)
		       : conflist_wrap(list, root, path, err);
}

/* Of another network's plugin, only its type and name are examined, as in libcni. */
static int read_plugin_if_named(struct conflist *list, json_t *plugin, const char *path,
				const char *wanted, struct cni_error *err)
{
	const char *name = "";

	if (conflist_validate_plugin(plugin, err) ||
	    cni_json_get_string(plugin, "name", &name, err))
		return cni_error_wrap(err, "%s", path);
	return strcmp(name, wanted) ? 0 : conflist_wrap(list, plugin, path, err);
}

/* list->name stays NULL for a plugin of another network. */
static int read_candidate(struct conflist *list, const char *path, const char *wanted,
			  struct cni_error *err)
{
	cleanup_json json_t *root = NULL;

	list->text = directory_read_file(path, &list->length, err);
	if (!list->text)
		return -1;
	root = cni_json_parse_object(list->text, list->length, path, err);
	if (!root)
		return -1;
	return has_suffix(path, list_suffixes)
		       ? read_list(list, root, path, err)
		       : read_plugin_if_named(list, root, path, wanted, err);
}

static int search(struct conflist *list, const char *directory, const char *wanted,
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

int conflist_find(struct conflist *list, const char *path_or_name, struct cni_error *err)
{
	const char *directory = getenv("NETCONFPATH");

	if (strchr(path_or_name, '/') || has_suffix(path_or_name, list_suffixes) ||
	    has_suffix(path_or_name, plugin_suffixes))
		return read_path(list, path_or_name, err);
	if (!directory || !*directory)
		directory = DEFAULT_DIRECTORY;
	if (search(list, directory, path_or_name, list_suffixes, err) ||
	    (!list->name && search(list, directory, path_or_name, plugin_suffixes, err)))
		return -1;
	if (list->name)
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "no network named \"%s\" in %s: give the path of its .conflist, or "
			     "set NETCONFPATH to its directory",
			     path_or_name, directory);
}
