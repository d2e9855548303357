/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cache.c - reads, writes and removes the files in which libcni keeps what was added.
 */
#define _GNU_SOURCE
#include "cnirun/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <nettle/base64.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cni/cleanup.h"
#include "cni/environment.h"
#include "cni/input.h"
#include "cni/json.h"
#include "cni/write_all.h"
#include "cnirun/directory.h"
#include "cnirun/output.h"

#define KIND "cniCacheV1"
#define FOLDER "results"

static char *entry_path(const char *directory, const char *network, const char *container_id,
			const char *ifname)
{
	char *path;

	if (asprintf(&path, "%s/" FOLDER "/%s-%s-%s", directory, network, container_id, ifname) < 0)
		return NULL;
	return path;
}

static int read_fields(struct cache_entry *entry, struct cni_error *err)
{
	const json_t *root = entry->root;

	if (cni_json_get_string(root, "networkName", &entry->network, err) ||
	    cni_json_get_string(root, "containerId", &entry->container_id, err) ||
	    cni_json_get_string(root, "ifName", &entry->ifname, err) ||
	    cni_json_get_string(root, "netns", &entry->netns, err) ||
	    cni_json_get_array(root, "cniArgs", &entry->args, err) ||
	    cni_json_get_object(root, "capabilityArgs", &entry->capability_args, err) ||
	    cni_json_get_object(root, "result", &entry->result, err))
		return -1;
	if (entry->network && entry->container_id && entry->ifname)
		return 0;
	return cni_error_set(err, CNI_ERROR_DECODE,
			     "networkName, containerId or ifName is missing");
}

static int check_args(const json_t *args, struct cni_error *err)
{
	const json_t *pair;
	size_t index;

	json_array_foreach (args, index, pair) {
		if (json_array_size(pair) != 2 || !json_is_string(json_array_get(pair, 0)) ||
		    !json_is_string(json_array_get(pair, 1)))
			return cni_error_set(err, CNI_ERROR_DECODE,
					     "cniArgs holds what is no pair of strings");
	}
	return 0;
}

static int interpret(struct cache_entry *entry, struct cni_error *err)
{
	const json_t *kind = cni_json_get(entry->root, "kind");
	const char *name = json_string_value(kind);

	if (!kind) {
		entry->result = entry->root;
		return 0;
	}
	if (!name || strcmp(name, KIND))
		return cni_error_set(err, CNI_ERROR_DECODE, "\"kind\" is not \"" KIND "\"");
	if (read_fields(entry, err))
		return -1;
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
	if (directory_read_file(path, &text, &length, err))
		return -1;
	entry->root = cni_json_parse_object(text, length, "its text", err);
	if (!entry->root || interpret(entry, err))
		return cni_error_wrap(err, "the cached result %s cannot be used", path);
	return 0;
}

static int check_owner(struct cache_entry *entry, const char *network, const char *container_id,
		       const char *ifname, struct cni_error *err)
{
	if (!entry->network ||
	    (!strcmp(entry->network, network) && !strcmp(entry->container_id, container_id) &&
	     !strcmp(entry->ifname, ifname)))
		return 0;
	entry->foreign = true;
	return cni_error_set(err, CNI_ERROR_DECODE,
			     "the cached result %s is that of network \"%s\", container \"%s\", "
			     "interface \"%s\": choose another container ID",
			     entry->path, entry->network, entry->container_id, entry->ifname);
}

int cache_read(struct cache_entry *entry, const char *directory, const char *network,
	       const char *container_id, const char *ifname, struct cni_error *err)
{
	if (read_entry(entry, entry_path(directory, network, container_id, ifname), err))
		return -1;
	return check_owner(entry, network, container_id, ifname, err);
}

static int set_if_any(json_t *root, const char *key, json_t *value)
{
	if (!json_array_size(value) && !json_object_size(value))
		return 0;
	return json_object_set(root, key, value);
}

/* libcni keeps the conflist in a Go []byte, which is base64 in JSON. */
static char *record_dump(const struct cache_record *record)
{
	size_t length = BASE64_ENCODE_RAW_LENGTH(record->list->length);
	cleanup_free char *config = malloc(length);
	cleanup_json json_t *root = NULL;

	if (!config)
		return NULL;
	base64_encode_raw(config, record->list->length, (const uint8_t *)record->list->text);
	root = json_pack("{s:s, s:s, s:s%, s:s, s:s}", "kind", KIND, "containerId",
			 record->container_id, "config", config, length, "ifName", record->ifname,
			 "networkName", record->list->name);
	if (!root ||
	    (*record->netns && json_object_set_new(root, "netns", json_string(record->netns))) ||
	    set_if_any(root, "cniArgs", record->args) ||
	    set_if_any(root, "capabilityArgs", record->capability_args) ||
	    set_if_any(root, "result", record->result))
		return NULL;
	return json_dumps(root, JSON_COMPACT);
}

/* Readers see the old file or the new one, never a part of it. */
static int write_atomically(const char *folder, const char *path, const char *text,
			    struct cni_error *err)
{
	cleanup_free char *temporary = NULL;
	cleanup_close int fd = -1;

	if (asprintf(&temporary, "%s/.cnirun-XXXXXX", folder) < 0) {
		temporary = NULL;
		return cni_error_no_memory(err);
	}
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

int cache_write(const struct cache_record *record, const char *directory, struct cni_error *err)
{
	cleanup_free char *text = record_dump(record);
	cleanup_free char *path =
		entry_path(directory, record->list->name, record->container_id, record->ifname);
	cleanup_free char *folder = NULL;

	if (!text || !path)
		return cni_error_no_memory(err);
	if (strlen(text) > CNI_INPUT_LIMIT)
		return cni_error_set(err, CNI_ERROR_IO,
				     "%s: the result is too large for the cache: with the list it "
				     "takes more than %zu bytes",
				     path, CNI_INPUT_LIMIT);
	folder = strndup(path, (size_t)(strrchr(path, '/') - path));
	if (!folder)
		return cni_error_no_memory(err);
	if (directory_create(folder, err))
		return -1;
	return write_atomically(folder, path, text, err);
}

int cache_remove(const char *directory, const char *network, const char *container_id,
		 const char *ifname, struct cni_error *err)
{
	cleanup_free char *path = entry_path(directory, network, container_id, ifname);

	if (!path)
		return cni_error_no_memory(err);
	if (!unlink(path) || errno == ENOENT || errno == ENOTDIR)
		return 0;
	return cni_error_set(err, CNI_ERROR_IO, "cannot remove %s: %s", path, strerror(errno));
}

static bool may_be_of(const char *path, const char *network)
{
	const char *name = strrchr(path, '/') + 1;
	size_t length = strlen(network);

	return !strncmp(name, network, length) && name[length] == '-';
}

static int keep_entry(struct cache_entries *entries, struct cache_entry *entry,
		      struct cni_error *err)
{
	struct cache_entry *grown =
		realloc(entries->entries, (entries->count + 1) * sizeof(*grown));

	if (!grown)
		return cni_error_no_memory(err);
	entries->entries = grown;
	grown[entries->count++] = *entry;
	*entry = (struct cache_entry){0};
	return 0;
}

/* What a file of all must be beyond what read_entry() asks: one that tells of another
 * container than its name could have that one deleted. */
static int check_name(const struct cache_entry *entry, const char *directory, struct cni_error *err)
{
	cleanup_free char *path = NULL;

	if (!entry->network)
		return cni_error_set(err, CNI_ERROR_DECODE,
				     "%s cannot be used: it is of an old format that does not say "
				     "whose result it is",
				     entry->path);
	path = entry_path(directory, entry->network, entry->container_id, entry->ifname);
	if (!path)
		return cni_error_no_memory(err);
	if (!strcmp(path, entry->path))
		return 0;
	return cni_error_set(err, CNI_ERROR_DECODE, "%s cannot be used: it should be %s",
			     entry->path, path);
}

static bool is_valid_owner(const char *container_id, const char *ifname)
{
	struct cni_error ignored = {0};
	bool valid = !cni_validate_container_id(container_id, &ignored) &&
		     !cni_validate_ifname(ifname, &ignored);

	cni_error_release(&ignored);
	return valid;
}

/* Names may have dashes: "a-b-eth0" is a's or a-b's. */
static int append_possible(json_t *possible, const char *container_and_ifname,
			   struct cni_error *err)
{
	cleanup_free char *container_id = strdup(container_and_ifname);
	char *dash;

	if (!container_id)
		return cni_error_no_memory(err);
	for (dash = strchr(container_id, '-'); dash; dash = strchr(dash + 1, '-')) {
		int failed = 0;

		*dash = '\0';
		if (is_valid_owner(container_id, dash + 1))
			failed = json_array_append_new(possible,
						       json_pack("{s:s, s:s}", "containerID",
								 container_id, "ifname", dash + 1));
		*dash = '-';
		if (failed)
			return cni_error_no_memory(err);
	}
	return 0;
}

static int read_one_of_all(struct cache_entries *entries, const char *path, const char *directory,
			   const char *network, struct cni_error *err)
{
	cleanup_cache_entry struct cache_entry entry = {0};
	struct cni_error problem = {0};
	int failed = read_entry(&entry, strdup(path), &problem);

	if (!failed && !entry.root)
		return 0;
	if (failed || check_name(&entry, directory, &problem)) {
		output_warn("%s", cni_error_message(&problem));
		cni_error_release(&problem);
		return append_possible(entries->possible,
				       strrchr(path, '/') + 1 + strlen(network) + 1, err);
	}
	return strcmp(entry.network, network) ? 0 : keep_entry(entries, &entry, err);
}

int cache_read_all(struct cache_entries *entries, const char *directory, const char *network,
		   struct cni_error *err)
{
	cleanup_directory struct directory files = {0};
	int failed;

	entries->possible = json_array();
	if (!entries->possible)
		return cni_error_no_memory(err);
	failed = directory_list(&files, directory, FOLDER, NULL, err);
	for (size_t i = 0; i < files.count && !failed; i++) {
		if (may_be_of(files.paths[i], network))
			failed = read_one_of_all(entries, files.paths[i], directory, network, err);
	}
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
