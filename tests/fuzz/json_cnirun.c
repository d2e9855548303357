/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * json_cnirun.c - libFuzzer for the input of cnirun.
 *
 * The first byte of an input is the kind of the rest: l, a conflist; s, the configuration of a
 * single plugin; c, a file of the cache; r, a result; otherwise arguments of -p and --args, one on
 * each line.
 */
#include <fcntl.h>
#include <jansson.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/json.h"
#include "cni/cache.h"
#include "cni/result.h"
#include "cni/version.h"
#include "runtimes/cnirun/cache.h"
#include "runtimes/cnirun/conflist.h"
#include "runtimes/cnirun/plugin.h"
#include "runtimes/cnirun/runtime_conf.h"
#include "json_fuzz.h"

#define MAX_LINES 4 /* each may stand for 65,535 mappings */

static void compose(const struct conflist *list)
{
	cleanup_json json_t *capabilities =
		json_pack("{s:[{s:i, s:i}], s:{}}", "portMappings", "hostPort", 1, "containerPort",
			  2, "bandwidth");
	cleanup_json json_t *prev_result = json_pack("{s:s}", "cniVersion", "1.0.0");
	const struct runtime_conf conf = {.capability_args = capabilities};
	const struct operation operation = {.command = "ADD", .list = list, .conf = &conf};
	const json_t *plugin;
	size_t index;

	MUST(json_array_size(list->plugins) > 0 && *list->name);
	json_array_foreach (list->plugins, index, plugin) {
		cleanup_json json_t *request = NULL;

		MUST(*plugin_type(plugin));
		request = plugin_compose_request(&operation, plugin, prev_result);
		MUST(json_object_get(request, "name"));
	}
	conflist_version_reaches(list, "1.1.0");
	conflist_has_capability(list, "portMappings");
}

static void take_list(const char *text, size_t length, bool single)
{
	struct conflist list = {0};
	struct cni_error err = {0};
	cleanup_json json_t *root = cni_json_parse_object(text, length, "the text", &err);
	int result;

	if (!checked_json(root, &err))
		return;
	result = single ? conflist_wrap(&list, root, "the text", &err)
			: conflist_read(&list, root, NULL, "the text", &err);
	if (!checked(result, &err))
		compose(&list);
	conflist_release(&list);
}

/* The cache is read from a file; this one is on a tmpfs. */
static const char *cache_directory(void)
{
	static char directory[] = "/dev/shm/json_cnirun.XXXXXX";
	static char results[sizeof(directory) + 16];

	if (*results)
		return directory;
	MUST(mkdtemp(directory));
	snprintf(results, sizeof(results), "%s/results", directory);
	MUST(mkdir(results, 0700) == 0);
	return directory;
}

static void remove_cache(void)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/results", cache_directory());
	rmdir(path);
	rmdir(cache_directory());
}

static void take_cache(const char *text, size_t length)
{
	static bool registered;
	struct cni_error err = {0};
	struct cache_entry entry = {0};
	const struct runtime_conf conf = {
		.container_id = "c", .ifname = "eth0", .cache_directory = cache_directory()};
	char path[64];
	int fd;

	if (!registered)
		atexit(remove_cache);
	registered = true;
	snprintf(path, sizeof(path), "%s/results/n-c-eth0", cache_directory());
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	MUST(fd >= 0 && write(fd, text, length) == (ssize_t)length);
	close(fd);
	if (!checked(cache_read(&entry, "n", &conf, &err), &err)) {
		cleanup_free char *args = cni_cache_format_args(entry.args);

		MUST(entry.root && args);
	}
	cache_release(&entry);
	unlink(path);
}

static void take_result(const char *text, size_t length)
{
	struct cni_error err = {0};
	cleanup_json json_t *result = cni_json_parse_object(text, length, "the text", &err);

	if (!checked_json(result, &err))
		return;
	for (size_t i = 0; cni_versions[i]; i++) {
		cleanup_json json_t *labelled = cni_result_relabel(result, cni_versions[i]);

		MUST(labelled);
		checked(cni_result_validate(labelled, cni_versions[i], &err), &err);
	}
}

static void take_args(const char *line)
{
	struct cni_error err = {0};
	cleanup_json json_t *pairs = args_parse(line, &err);
	cleanup_free char *text = NULL;

	if (!checked_json(pairs, &err))
		return;
	text = cni_cache_format_args(pairs);
	MUST(text && strcmp(text, line) == 0);
}

static void take_arguments(const char *text, size_t length)
{
	cleanup_free char *copy = strndup(text, length);
	cleanup_json json_t *mappings = json_array();
	struct cni_error err = {0};
	char *rest = copy;

	MUST(copy && mappings);
	for (int i = 0; i < MAX_LINES && rest; i++) {
		const char *line = strsep(&rest, "\n");

		checked(portmapping_parse(line, mappings, &err), &err);
		take_args(line);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data + 1;

	if (size == 0)
		return 0;
	if (*data == 'l' || *data == 's')
		take_list(text, size - 1, *data == 's');
	else if (*data == 'c')
		take_cache(text, size - 1);
	else if (*data == 'r')
		take_result(text, size - 1);
	else
		take_arguments(text, size - 1);
	return 0;
}
