/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conflist_find.c - where a list comes from: a file, or a directory searched by name.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "cni/cleanup.h"
#include "cni/json.h"
#include "cnirun/conflist.h"
#include "cnirun/directory.h"

static const char *const list_suffixes[] = {".conflist", NULL};
static const char *const single_suffixes[] = {".conf", ".json", NULL};

static bool ends_in(const char *text, const char *suffix)
{
	size_t length = strlen(text);

	return length >= strlen(suffix) && !strcmp(text + length - strlen(suffix), suffix);
}

static bool is_path(const char *text)
{
	return strchr(text, '/') || ends_in(text, ".conflist") || ends_in(text, ".conf") ||
	       ends_in(text, ".json");
}

static char *directory_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
}

static int read_list_file(struct conflist *list, const char *path, const char *text, size_t length,
			  struct cni_error *err)
{
	cleanup_free char *directory = directory_of(path);

	if (!directory)
		return cni_error_no_memory(err);
	return conflist_parse(list, text, length, directory, path, err);
}

/* A path's own words count for more than its suffix: a list in a .json file is common. */
static bool holds_list(const char *path, const char *text, size_t length)
{
	struct cni_error ignored = {0};
	cleanup_json json_t *root = NULL;

	if (ends_in(path, ".conflist"))
		return true;
	root = cni_json_parse_object(text, length, path, &ignored);
	cni_error_release(&ignored);
	return json_object_get(root, "plugins") && !cni_json_get(root, "type");
}

int conflist_read_file(struct conflist *list, const char *path, struct cni_error *err)
{
	cleanup_free char *text = NULL;
	size_t length;

	if (directory_read_any(path, &text, &length, err))
		return -1;
	if (holds_list(path, text, length))
		return read_list_file(list, path, text, length, err);
	return conflist_parse_single(list, text, length, path, err);
}

/* Of a single plugin's file only what libcni would read of it: its name may be missing
 * or another's, but it must be JSON with a type. */
static int read_single_name(const char *path, char **text, size_t *length, char **name,
			    struct cni_error *err)
{
	cleanup_json json_t *plugin = NULL;
	const char *found = "";

	if (directory_read_file(path, text, length, err))
		return -1;
	plugin = cni_json_parse_object(*text, *length, path, err);
	if (!plugin || plugin_validate_single(plugin, path, err))
		return -1;
	if (cni_json_get_string(plugin, "name", &found, err))
		return cni_error_wrap(err, "%s", path);
	*name = strdup(found);
	return *name ? 0 : cni_error_no_memory(err);
}

/* 1: it is the wanted one; 0: it is another; -1. */
static int try_single_file(struct conflist *list, const char *path, const char *wanted,
			   struct cni_error *err)
{
	cleanup_free char *text = NULL;
	cleanup_free char *name = NULL;
	size_t length;

	if (read_single_name(path, &text, &length, &name, err))
		return -1;
	if (strcmp(name, wanted))
		return 0;
	return conflist_parse_single(list, text, length, path, err) ? -1 : 1;
}

static int try_list_file(struct conflist *list, const char *path, const char *wanted,
			 struct cni_error *err)
{
	cleanup_free char *text = NULL;
	size_t length;

	if (directory_read_file(path, &text, &length, err) ||
	    read_list_file(list, path, text, length, err))
		return -1;
	if (!strcmp(list->name, wanted))
		return 1;
	conflist_release(list);
	return 0;
}

typedef int (*try_file)(struct conflist *, const char *, const char *, struct cni_error *);

/* 1: found; 0: not found; -1. */
static int search(struct conflist *list, const char *directory, const char *wanted,
		  const char *const *suffixes, try_file try, struct cni_error *err)
{
	cleanup_directory struct directory files = {0};
	int outcome = 0;

	if (directory_list(&files, directory, NULL, suffixes, err))
		return -1;
	for (size_t i = 0; i < files.count && !outcome; i++)
		outcome = try(list, files.paths[i], wanted, err);
	return outcome;
}

int conflist_find_in_directory(struct conflist *list, const char *directory, const char *name,
			       struct cni_error *err)
{
	int outcome = search(list, directory, name, list_suffixes, try_list_file, err);

	if (!outcome)
		outcome = search(list, directory, name, single_suffixes, try_single_file, err);
	if (outcome)
		return outcome > 0 ? 0 : -1;
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "no network named \"%s\" in %s: give the path of its .conflist, or "
			     "set NETCONFPATH to its directory",
			     name, directory);
}

int conflist_find(struct conflist *list, const char *path_or_name, struct cni_error *err)
{
	const char *directory = getenv("NETCONFPATH");

	if (is_path(path_or_name))
		return conflist_read_file(list, path_or_name, err);
	if (!directory || !*directory)
		directory = CONFLIST_DEFAULT_DIRECTORY;
	return conflist_find_in_directory(list, directory, path_or_name, err);
}
