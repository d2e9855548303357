/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* conflists.c - the files that runtimes take for conflists. */
#include "operator/conflists.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cleanup.h"
#include "lib/json.h"
#include "lib/text.h"

static const struct {
	const char *path, *engine;
} directories[] = {
	{"/etc/cni/net.d", ""},
	{"/var/lib/rancher/k3s/agent/etc/cni/net.d", "-k3s"},
	{"/var/lib/rancher/rke2/agent/etc/cni/net.d", "-rke2"},
	{"/var/snap/microk8s/current/args/cni-network", "-microk8s"},
};

/* One plugin alone stands in those that are no ".conflist". As Go's filepath.Ext() has it: from the
 * last dot on. */
int conflist_is_read(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');

	return entry->d_type != DT_DIR && dot &&
	       (!strcmp(dot, ".conflist") || !strcmp(dot, ".conf") || !strcmp(dot, ".json"));
}

void conflists_visit(conflist_take *take, void *context)
{
	char path[512];

	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++) {
		struct dirent **entries = NULL;
		int count = scandir(directories[i].path, &entries, conflist_is_read, alphasort);

		for (int j = 0; j < count; j++) {
			const struct conflist_file file = {path, entries[j]->d_name,
							   directories[i].engine, j == 0};

			snprintf(path, sizeof(path), "%s/%s", directories[i].path, file.name);
			take(context, &file);
			free(entries[j]);
		}
		free(entries);
	}
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

static int is_of_folder(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');

	return entry->d_type != DT_DIR && dot && !strcmp(dot, ".conf");
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
	cleanup_free char *folder = conflist_folder(list, path);
	struct dirent **entries = NULL;
	int count = folder ? scandir(folder, &entries, is_of_folder, alphasort) : 0;

	for (int i = 0; i < count; i++) {
		cleanup_free char *file = cni_format("%s/%s", folder, entries[i]->d_name);
		json_t *plugin = conflist_load_alone(file);

		if (plugin)
			json_array_append_new(plugins_of(list), plugin);
		free(entries[i]);
	}
	free(entries);
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

json_t *conflist_load(const char *path)
{
	json_t *list = conflist_load_alone(path), *plugin;
	size_t i;

	if (!json_is_object(list))
		return list;
	add_folder(list, path);
	if (*plugin_type(list)) {
		add_delegates(list, list);
		return list;
	}
	json_array_foreach (json_object_get(list, "plugins"), i, plugin)
		add_delegates(list, plugin);
	return list;
}

const char *plugin_type(const json_t *plugin)
{
	const char *type = json_string_value(cni_json_get(plugin, "type"));

	return type ? type : "";
}

json_t *conflist_plugin(const json_t *list, const char *type)
{
	json_t *plugin;
	size_t i;

	json_array_foreach (json_object_get(list, "plugins"), i, plugin)
		if (!strcmp(plugin_type(plugin), type))
			return plugin;
	return NULL;
}
