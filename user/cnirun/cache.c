/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cache.c - reads, writes and removes the files in which libcni keeps what was added.
 */
#include "cnirun/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <nettle/base64.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/io.h"
#include "cni/json.h"
#include "lib/text.h"
#include "cnirun/directory.h"
#include "cnirun/output.h"

#define KIND "cniCacheV1"
#define FOLDER "/results"

static char *entry_path(const char *cache_directory, const char *network, const char *container_id,
			const char *ifname)
{
	return cni_format("%s" FOLDER "/%s-%s-%s", cache_directory, network, container_id, ifname);
}

static char *path_of(const char *network, const struct runtime_conf *conf)
{
	return entry_path(conf->cache_directory, network, conf->container_id, conf->ifname);
}

static int check_args(const json_t *args, struct cni_error *err)
{
	const json_t *pair;
	size_t index;

	json_array_foreach (args, index, pair) {
		if (json_array_size(pair) != 2 || !json_is_string(json_array_get(pair, 0)) ||
		    !json_is_string(json_array_get(pair, 1)))
			return cni_error_set(err, CNI_ERROR_DECODE,
					     "cniArgs has an element that is no pair of strings");
	}
	return 0;
}

static int interpret(struct cache_entry *entry, struct cni_error *err)
{
	json_t *root = entry->root;
	const json_t *kind = cni_json_get(root, "kind");
	const char *kind_text = json_string_value(kind);

	if (!kind) {
		entry->result = root;
		return 0;
	}
	if (!kind_text || strcmp(kind_text, KIND))
		return cni_error_set(err, CNI_ERROR_DECODE, "\"kind\" is not \"" KIND "\"");
	if (cni_json_get_string(root, "networkName", &entry->network, err) ||
	    cni_json_get_string(root, "containerId", &entry->container_id, err) ||
	    cni_json_get_string(root, "ifName", &entry->ifname, err) ||
	    cni_json_get_string(root, "netns", &entry->netns, err) ||
	    cni_json_get_array(root, "cniArgs", &entry->args, err) ||
	    cni_json_get_object(root, "capabilityArgs", &entry->capability_args, err) ||
	    cni_json_get_object(root, "result", &entry->result, err))
		return -1;
	if (!entry->network || !entry->container_id || !entry->ifname)
		return cni_error_set(err, CNI_ERROR_DECODE,
				     "networkName, containerId or ifName is missing");
	return check_args(entry->args, err);
}

/* Takes over the path. */
static int read_entry(struct cache_entry *entry, char *path, struct cni_error *err)
{
	cleanup_free char *text = NULL;
	size_t length;

	entry->path = path;
	if (!path)
		return cni_error_no_memory(err);
	if (access(path, F_OK) && errno == ENOENT)
		return 0;
	text = directory_read_file(path, &length, err);
	if (!text)
		return -1;
	entry->root = cni_json_parse_object(text, length, "its text", err);
	if (!entry->root || interpret(entry, err))
		return cni_error_wrap(err, "the cached result %s cannot be used", path);
	return 0;
}

int cache_read(struct cache_entry *entry, const char *network, const struct runtime_conf *conf,
	       struct cni_error *err)
{
	if (read_entry(entry, path_of(network, conf), err))
		return -1;
	entry->is_of_another = entry->network && (strcmp(entry->network, network) ||
						  strcmp(entry->container_id, conf->container_id) ||
						  strcmp(entry->ifname, conf->ifname));
	if (!entry->is_of_another)
		return 0;
	return cni_error_set(err, CNI_ERROR_DECODE,
			     "the cached result %s is that of network \"%s\", container \"%s\", "
			     "interface \"%s\": choose another container ID",
			     entry->path, entry->network, entry->container_id, entry->ifname);
}

static int set_unless_empty(json_t *root, const char *key, json_t *value)
{
	if (!json_array_size(value) && !json_object_size(value))
		return 0;
	return json_object_set(root, key, value);
}

/* libcni keeps the conflist in a Go []byte, which is base64 in JSON. NULL without memory. */
static char *dump_entry(const struct conflist *list, const struct runtime_conf *conf,
			json_t *result)
{
	size_t length = BASE64_ENCODE_RAW_LENGTH(list->length);
	cleanup_free char *config = malloc(length);
	cleanup_json json_t *root = NULL;

	if (!config)
		return NULL;
	base64_encode_raw(config, list->length, (const uint8_t *)list->text);
	root = json_pack("{s:s, s:s, s:s%, s:s, s:s, s:s*}", "kind", KIND, "containerId",
			 conf->container_id, "config", config, length, "ifName", conf->ifname,
			 "networkName", list->name, "netns", *conf->netns ? conf->netns : NULL);
	if (!root || set_unless_empty(root, "cniArgs", conf->args) ||
	    set_unless_empty(root, "capabilityArgs", conf->capability_args) ||
	    set_unless_empty(root, "result", result))
		return NULL;
	return json_dumps(root, JSON_COMPACT);
}

/* Readers see the old file or the new one, never a part of it. */
static int write_atomically(const char *folder, const char *path, const char *text,
			    struct cni_error *err)
{
	cleanup_free char *temporary = cni_format("%s/.cnirun-XXXXXX", folder);
	cleanup_close int fd = -1;

	if (!temporary)
		return cni_error_no_memory(err);
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return cni_error_set(err, CNI_ERROR_IO, "cannot write in %s: %s", folder,
				     strerror(errno));
	if (!cni_write_all(fd, text, strlen(text)) && !rename(temporary, path))
		return 0;
	cni_error_set(err, CNI_ERROR_IO, "cannot write %s: %s", path, strerror(errno));
	unlink(temporary);
	return -1;
}

int cache_write(const struct conflist *list, const struct runtime_conf *conf, json_t *result,
		struct cni_error *err)
{
	cleanup_free char *text = dump_entry(list, conf, result);
	cleanup_free char *folder = cni_format("%s" FOLDER, conf->cache_directory);
	cleanup_free char *path = path_of(list->name, conf);

	if (!text || !folder || !path)
		return cni_error_no_memory(err);
	if (strlen(text) > CNI_INPUT_LIMIT)
		return cni_error_set(err, CNI_ERROR_IO,
				     "%s: the result is too large for the cache: with the list it "
				     "takes more than %zu bytes",
				     path, CNI_INPUT_LIMIT);
	if (directory_create(folder, err))
		return -1;
	return write_atomically(folder, path, text, err);
}

int cache_remove(const char *network, const struct runtime_conf *conf, struct cni_error *err)
{
	cleanup_free char *path = path_of(network, conf);

	if (!path)
		return cni_error_no_memory(err);
	if (!unlink(path) || errno == ENOENT || errno == ENOTDIR)
		return 0;
	return cni_error_set(err, CNI_ERROR_IO, "cannot remove %s: %s", path, strerror(errno));
}

/* Whether the file, which has been read, says whose it is and has the name that follows from it:
 * otherwise gc could delete the attachment of a container that lives. */
static int check_name(const struct cache_entry *entry, const char *cache_directory,
		      struct cni_error *err)
{
	cleanup_free char *path = NULL;

	if (!entry->network)
		return cni_error_set(err, CNI_ERROR_DECODE,
				     "%s cannot be used: it is of an old format that does not say "
				     "whose result it is",
				     entry->path);
	path = entry_path(cache_directory, entry->network, entry->container_id, entry->ifname);
	if (!path)
		return cni_error_no_memory(err);
	if (!strcmp(path, entry->path))
		return 0;
	return cni_error_set(err, CNI_ERROR_DECODE, "%s cannot be used: it should be %s",
			     entry->path, path);
}

/* Names may have dashes: "a-b-eth0" is a's or a-b's. */
static int append_possible(json_t *possible, const char *container_and_ifname,
			   struct cni_error *err)
{
	cleanup_free char *container_id = strdup(container_and_ifname);
	struct cni_error invalid = {0};

	if (!container_id)
		return cni_error_no_memory(err);
	for (char *dash = strchr(container_id, '-'); dash; dash = strchr(dash + 1, '-')) {
		const struct runtime_conf conf = {.container_id = container_id, .ifname = dash + 1};

		*dash = '\0';
		if (runtime_conf_validate(&conf, &invalid))
			cni_error_release(&invalid);
		else if (json_array_append_new(possible,
					       json_pack("{s:s, s:s}", "containerID", container_id,
							 "ifname", dash + 1)))
			return cni_error_no_memory(err);
		*dash = '-';
	}
	return 0;
}

static int append_entry(struct cache_entries *entries, struct cache_entry *entry,
			struct cni_error *err)
{
	struct cache_entry *grown =
		reallocarray(entries->entries, entries->count + 1, sizeof(*grown));

	if (!grown)
		return cni_error_no_memory(err);
	entries->entries = grown;
	grown[entries->count++] = *entry;
	*entry = (struct cache_entry){0};
	return 0;
}

static int read_one_of_all(struct cache_entries *entries, const char *path, const char *network,
			   const char *cache_directory, struct cni_error *err)
{
	cleanup_cache_entry struct cache_entry entry = {0};
	const char *name = strrchr(path, '/') + 1;
	struct cni_error problem = {0};
	size_t length = strlen(network);
	int failed;

	if (strncmp(name, network, length) || name[length] != '-')
		return 0;
	failed = read_entry(&entry, strdup(path), &problem);
	if (!failed && !entry.root)
		return 0;
	if (failed || check_name(&entry, cache_directory, &problem)) {
		output_warn("%s", cni_error_message(&problem));
		cni_error_release(&problem);
		return append_possible(entries->possible, name + length + 1, err);
	}
	return strcmp(entry.network, network) ? 0 : append_entry(entries, &entry, err);
}

int cache_read_all(struct cache_entries *entries, const char *network, const char *cache_directory,
		   struct cni_error *err)
{
	cleanup_directory struct directory files = {0};
	cleanup_free char *folder = cni_format("%s" FOLDER, cache_directory);
	int failed;

	entries->possible = json_array();
	if (!folder || !entries->possible)
		return cni_error_no_memory(err);
	failed = directory_list(&files, folder, NULL, err);
	for (size_t i = 0; i < files.count && !failed; i++)
		failed = read_one_of_all(entries, files.paths[i], network, cache_directory, err);
	return failed;
}

void cache_release(struct cache_entry *entry)
{
	json_decref(entry->root);
	free(entry->path);
	*entry = (struct cache_entry){0};
}

void cache_release_all(struct cache_entries *entries)
{
	for (size_t i = 0; i < entries->count; i++)
		cache_release(&entries->entries[i]);
	free(entries->entries);
	json_decref(entries->possible);
	*entries = (struct cache_entries){0};
}
