/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* conflists.c - the files that runtimes take for conflists. */
#include "operator/conflists.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cni/execute.h"
#include "lib/cleanup.h"
#include "lib/json.h"
#include "lib/text.h"

static const struct {
	const char *path, *engine;
} directories[] = {
	{"/etc/cni/net.d", ""},
	{K3S_CONFLISTS, "-k3s"},
	{"/var/lib/rancher/rke2/agent/etc/cni/net.d", "-rke2"},
	{"/var/snap/microk8s/current/args/cni-network", "-microk8s"},
};

/* One plugin alone stands in those that are no ".conflist". */
int conflist_is_read(const struct dirent *entry)
{
	const char *name = entry->d_name;

	return entry->d_type != DT_DIR &&
	       (text_ends_with(name, ".conflist") || text_ends_with(name, ".conf") ||
		text_ends_with(name, ".json"));
}

json_t *conflist_load_alone(const char *path)
{
	/* O_NONBLOCK, as opening a pipe waits for its writer. */
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	return fd < 0 ? NULL : json_loadfd(fd, 0, NULL);
}

char *conflist_folder(const json_t *list, const char *path)
{
	const char *name = json_string_value(cni_json_get(list, "name"));
	const char *slash = strrchr(path, '/');

	if (!slash || !json_is_object(list) || cni_json_get(list, "type") || !name || !*name ||
	    *name == '.' || strchr(name, '/') ||
	    json_is_true(cni_json_get(list, "loadOnlyInlinedPlugins")))
		return NULL;
	return cni_format("%.*s/%s", (int)(slash - path), path, name);
}

int conflist_is_of_folder(const struct dirent *entry)
{
	return entry->d_type != DT_DIR && text_ends_with(entry->d_name, ".conf");
}

/* The files of a list's folder, one plugin each. Begins as {0}. */
struct folder {
	char *path;
	struct dirent **entries;
	int count;
};

static void folder_open(struct folder *folder, const json_t *list, const char *path)
{
	folder->path = conflist_folder(list, path);
	folder->count = folder->path ? scandir(folder->path, &folder->entries,
					       conflist_is_of_folder, alphasort)
				     : 0;
}

static void folder_close(struct folder *folder)
{
	for (int i = 0; i < folder->count; i++)
		free(folder->entries[i]);
	free(folder->entries);
	free(folder->path);
}

#define cleanup_folder __attribute__((cleanup(folder_close)))

/* malloc'ed */
static char *folder_file(const struct folder *folder, int number)
{
	return cni_format("%s/%s", folder->path, folder->entries[number]->d_name);
}

static void visit_folder(conflist_take *take, void *context, const struct conflist_file *list)
{
	cleanup_json json_t *json = conflist_load_alone(list->path);
	cleanup_folder struct folder folder = {0};

	folder_open(&folder, json, list->path);
	for (int i = 0; i < folder.count; i++) {
		cleanup_free char *path = folder_file(&folder, i);
		const struct conflist_file file = {
			.path = path,
			.name = path + strlen(list->path) - strlen(list->name),
			.engine = list->engine,
			.of_folder = true,
		};

		take(context, &file);
	}
}

void conflists_visit(conflist_take *take, void *context)
{
	char path[512];

	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++) {
		struct dirent **entries = NULL;
		int count = scandir(directories[i].path, &entries, conflist_is_read, alphasort);

		for (int j = 0; j < count; j++) {
			const struct conflist_file file = {.path = path,
							   .name = entries[j]->d_name,
							   .engine = directories[i].engine,
							   .is_first = j == 0};

			snprintf(path, sizeof(path), "%s/%s", directories[i].path, file.name);
			take(context, &file);
			visit_folder(take, context, &file);
			free(entries[j]);
		}
		free(entries);
	}
}

/* The plugins of the list, where it has none yet, too. */
static json_t *plugins_of(json_t *list)
{
	json_t *plugins = json_object_get(list, "plugins");

	if (!plugins) {
		plugins = json_array();
		json_object_set_new(list, "plugins", plugins);
	}
	return plugins;
}

static void add_folder(json_t *list, const char *path)
{
	cleanup_folder struct folder folder = {0};

	folder_open(&folder, list, path);
	for (int i = 0; i < folder.count; i++) {
		cleanup_free char *file = folder_file(&folder, i);
		json_t *plugin = conflist_load_alone(file);

		if (plugin)
			json_array_append_new(plugins_of(list), plugin);
	}
}

char *conflist_file_of(const char *path, const char *type)
{
	cleanup_json json_t *list = conflist_load_alone(path);
	cleanup_folder struct folder folder = {0};

	if (conflist_plugin(list, type))
		return cni_format("%s", path);
	folder_open(&folder, list, path);
	for (int i = 0; i < folder.count; i++) {
		cleanup_free char *file = folder_file(&folder, i);
		cleanup_json json_t *plugin = conflist_load_alone(file);

		if (!strcmp(plugin_type(plugin), type))
			return TAKE(file);
	}
	return NULL;
}

/* Multus runs them: plugins, or whole lists. */
static void add_delegates(json_t *list, const json_t *multus)
{
	json_t *delegate, *plugin;
	size_t i, j;

	json_array_foreach (cni_json_get(multus, "delegates"), i, delegate) {
		if (*plugin_type(delegate))
			json_array_append(plugins_of(list), delegate);
		json_array_foreach (json_object_get(delegate, "plugins"), j, plugin)
			json_array_append(plugins_of(list), plugin);
	}
}

json_t *conflist_load_delegates(const char *path)
{
	json_t *list = conflist_load_alone(path), *plugin;
	size_t i;

	if (*plugin_type(list))
		add_delegates(list, list);
	else
		json_array_foreach (json_object_get(list, "plugins"), i, plugin)
			add_delegates(list, plugin);
	return list;
}

json_t *conflist_load(const char *path)
{
	json_t *list = conflist_load_delegates(path);

	if (json_is_object(list))
		add_folder(list, path);
	return list;
}
