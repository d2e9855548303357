/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* cache.c - reads, writes and removes the files in which libcni keeps what was added. */
#include "runtimes/cnirun/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <nettle/base64.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cni/cache.h"
#include "lib/memory.h"
#include "lib/cleanup.h"
#include "lib/digest.h"
#include "lib/io.h"
#include "lib/json.h"
#include "lib/text.h"
#include "runtimes/cnirun/directory.h"
#include "runtimes/cnirun/output.h"

#define KIND "cniCacheV1"
#define FOLDER CNI_CACHE_RESULTS
#define TEMPORARY ".cnirun-"
#define LOCKS "/locks"

static char *entry_path(const char *cache_directory, const char *network, const char *container_id,
			const char *ifname)
{
	return cni_format("%s" FOLDER "/%s-%s-%s", cache_directory, network, container_id, ifname);
}

static char *path_of(const char *network, const struct runtime_conf *conf)
{
	return entry_path(conf->cache_directory, network, conf->container_id, conf->ifname);
}

/* One for each entry, so that what a run which was killed has left is overwritten or removed. The
 * attachment's lock keeps others from it. */
static char *temporary_path_of(const char *network, const struct runtime_conf *conf)
{
	return cni_format("%s" FOLDER "/" TEMPORARY "%s,%s,%s", conf->cache_directory, network,
			  conf->container_id, conf->ifname);
}

static int read_members(struct cache_entry *entry, struct cni_error *err)
{
	json_t *root = entry->root;
	const json_t *kind = cni_json_get(root, "kind");
	const char *kind_text = json_string_value(kind);
	const json_t *pair;
	size_t index;

	if (!kind) {
		entry->result = root;
		return 0;
	}
	if (!kind_text || strcmp(kind_text, KIND))
		return cni_error_set(err, CNI_ERROR_DECODE, "\"kind\" is not \"" KIND "\"");
	if (cni_json_get_string(root, "config", &entry->config, err) ||
	    cni_json_get_string(root, "networkName", &entry->network, err) ||
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
	json_array_foreach (entry->args, index, pair)
		if (json_array_size(pair) != 2 || !json_is_string(json_array_get(pair, 0)) ||
		    !json_is_string(json_array_get(pair, 1)))
			return cni_error_set(err, CNI_ERROR_DECODE,
					     "cniArgs has an element that is no pair of strings");
	return 0;
}

/* By errno. A file whose name is too long cannot exist. */
static bool is_missing(void)
{
	return errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG;
}

/* Takes over the path. */
static int read_entry(struct cache_entry *entry, char *path, struct cni_error *err)
{
	cleanup_error struct cni_error unread = {0};
	cleanup_free char *text = NULL;
	size_t length;

	entry->path = path;
	text = directory_read_file(path, &length, &unread);
	/* Asked afterwards: another run may remove it at any time. */
	if (!text && access(path, F_OK) && is_missing())
		return 0;
	if (!text)
		return cni_error_chain(err, &unread);
	entry->root = cni_json_parse_object(text, length, "its text", err);
	if (!entry->root || read_members(entry, err))
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

int cache_read_conflist(const struct cache_entry *entry, struct conflist *list,
			struct cni_error *err)
{
	size_t length;
	cleanup_free char *text = cni_cache_decode_list(entry->config ?: "", &length);
	cleanup_json json_t *root = NULL;

	if (!text)
		cni_error_set(err, CNI_ERROR_DECODE, "its config is no base64");
	else
		root = cni_json_parse_object(text, length, "its config", err);
	if (!root || conflist_read(list, root, NULL, "its config", err))
		return cni_error_wrap(err, "the cached result %s cannot be used", entry->path);
	return 0;
}

static json_t *unless_empty(json_t *value)
{
	return json_array_size(value) || json_object_size(value) ? value : NULL;
}

/* libcni keeps the conflist in a Go []byte, which is base64 in JSON. NULL for a name that is no
 * UTF-8. */
static char *dump_entry(const struct conflist *list, const struct runtime_conf *conf,
			json_t *result)
{
	size_t length = BASE64_ENCODE_RAW_LENGTH(list->length);
	cleanup_free char *config = or_exit(malloc(length + 1));
	cleanup_json json_t *root = NULL;

	base64_encode_raw(config, list->length, (const uint8_t *)list->text);
	root = json_pack("{s:s, s:s, s:s%, s:s, s:s, s:s*, s:O*, s:O*, s:O*}", "kind", KIND,
			 "containerId", conf->container_id, "config", config, length, "ifName",
			 conf->ifname, "networkName", list->name, "netns",
			 *conf->netns ? conf->netns : NULL, "cniArgs", unless_empty(conf->args),
			 "capabilityArgs", unless_empty(conf->capability_args), "result",
			 unless_empty(result));
	return json_dumps(root, JSON_COMPACT);
}

int cache_write(const struct conflist *list, const struct runtime_conf *conf, json_t *result,
		struct cni_error *err)
{
	cleanup_free char *text = dump_entry(list, conf, result);
	cleanup_free char *folder = cni_format("%s" FOLDER, conf->cache_directory);
	cleanup_free char *temporary = temporary_path_of(list->name, conf);
	cleanup_free char *path = path_of(list->name, conf);

	if (!text)
		return cni_error_set(err, CNI_ERROR_IO, "%s: a name is not UTF-8", path);
	if (strlen(text) > CNI_INPUT_LIMIT)
		return cni_error_set(err, CNI_ERROR_IO,
				     "%s: the result is too large for the cache: with the list it "
				     "takes more than %zu bytes",
				     path, CNI_INPUT_LIMIT);
	if (directory_create(folder, err))
		return -1;
	if (!directory_replace_file(path, temporary, text, 0600, false))
		return 0;
	return cni_error_set(err, CNI_ERROR_IO, "cannot write %s: %s", path, strerror(errno));
}

int cache_remove(const char *network, const struct runtime_conf *conf, struct cni_error *err)
{
	cleanup_free char *path = path_of(network, conf);
	cleanup_free char *temporary = temporary_path_of(network, conf);

	unlink(temporary);
	if (!unlink(path) || is_missing())
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
	if (!strcmp(path, entry->path))
		return 0;
	return cni_error_set(err, CNI_ERROR_DECODE, "%s cannot be used: it should be %s",
			     entry->path, path);
}

/* Names may have dashes: "a-b-eth0" is a's or a-b's. */
static void append_possible(json_t *possible, const char *container_and_ifname)
{
	cleanup_free char *container_id = or_exit(strdup(container_and_ifname));
	cleanup_error struct cni_error invalid = {0};

	for (char *dash = strchr(container_id, '-'); dash; dash = strchr(dash + 1, '-')) {
		const struct runtime_conf conf = {.container_id = container_id, .ifname = dash + 1};

		*dash = '\0';
		if (!runtime_conf_validate(&conf, &invalid))
			json_array_append_new(possible,
					      json_pack("{s:s, s:s}", "containerID", container_id,
							"ifname", dash + 1));
		*dash = '-';
	}
}

static void read_one_of_all(struct cache_entries *entries, const char *path, const char *network,
			    const char *cache_directory)
{
	cleanup_cache_entry struct cache_entry entry = {0};
	const char *name = strrchr(path, '/') + 1;
	cleanup_error struct cni_error problem = {0};
	size_t length = strlen(network);
	int failed;

	if (strncmp(name, network, length) || name[length] != '-')
		return;
	failed = read_entry(&entry, or_exit(strdup(path)), &problem);
	if (!failed && !entry.root)
		return;
	if (failed || check_name(&entry, cache_directory, &problem)) {
		output_warn("%s", cni_error_message(&problem));
		append_possible(entries->possible, name + length + 1);
	} else if (!strcmp(entry.network, network)) {
		*ARRAY_ADD(entries->entries, entries->count) = entry;
		entry = (struct cache_entry){0};
	}
}

int cache_read_all(struct cache_entries *entries, const char *network, const char *cache_directory,
		   struct cni_error *err)
{
	cleanup_directory struct directory files = {0};
	cleanup_free char *folder = cni_format("%s" FOLDER, cache_directory);

	entries->possible = json_array();
	if (directory_list(&files, folder, NULL, err))
		return -1;
	for (size_t i = 0; i < files.count; i++)
		read_one_of_all(entries, files.paths[i], network, cache_directory);
	return 0;
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

/*
 * Locks of bytes of the file CACHE/locks/NETWORK: an attachment's is one byte, the network's all.
 *
 * Plugins inherit them with the open file: a plugin goes on when the program that runs it is
 * killed, and the next operation on the same container must not run beside it. A DEL beside an ADD
 * leaves what the ADD does last, and nobody removes it. Such a plugin may hang, too, hence the
 * limit. A process that a plugin has left running on purpose may still have the file, so who is
 * done unlocks it and does not just close it.
 */
static const struct flock whole_file = {.l_type = F_WRLCK};

static int lock_network_file(int *lock, const char *network, const struct runtime_conf *conf,
			     const struct flock *bytes, struct cni_error *err)
{
	cleanup_free char *folder = cni_format("%s" LOCKS, conf->cache_directory);
	cleanup_free char *path = cni_format("%s/%s", folder, network);
	struct lock_wanted wanted = {
		.bytes = bytes,
		.seconds = conf->timeout ? (int)conf->timeout : LOCK_WITHOUT_LIMIT,
	};

	if (directory_create(folder, err))
		return -1;
	wanted.fd = *lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
	if (*lock < 0)
		return cni_error_set(err, CNI_ERROR_IO, "cannot open %s: %s", path,
				     strerror(errno));
	if (!lock_file_take(&wanted))
		return 0;
	if (errno != EAGAIN)
		return cni_error_set(err, CNI_ERROR_IO, "cannot lock %s: %s", path,
				     strerror(errno));
	return cni_error_set(err, CNI_ERROR_TRY_AGAIN,
			     "%s has been locked for over %u second%s: `fuser -v %s` tells by "
			     "which processes; end the one that hangs, and try again",
			     path, conf->timeout, conf->timeout == 1 ? "" : "s", path);
}

int cache_lock_network(int *lock, const char *network, const struct runtime_conf *conf,
		       struct cni_error *err)
{
	return lock_network_file(lock, network, conf, &whole_file, err);
}

int cache_lock_attachment(int *lock, const char *network, const struct runtime_conf *conf,
			  struct cni_error *err)
{
	cleanup_free char *name = cni_format("%s,%s", conf->container_id, conf->ifname);
	uint64_t digest = digest_add(DIGEST_OF_NOTHING, name, strlen(name));
	const struct flock byte = {.l_type = F_WRLCK, .l_start = (off_t)(digest >> 33), .l_len = 1};

	return lock_network_file(lock, network, conf, &byte, err);
}

static void unlock(int lock)
{
	fcntl(lock, F_OFD_SETLK, &(struct flock){.l_type = F_UNLCK});
}

/* Of two that come here at once one gets it, as each gives the old lock up before it tries. */
bool cache_lock_widen(int lock)
{
	unlock(lock);
	return !fcntl(lock, F_OFD_SETLK, &whole_file);
}

void cache_lock_release(const int *lock)
{
	if (*lock < 0)
		return;
	unlock(*lock);
	close(*lock);
}

void cache_sweep(const char *network, const char *cache_directory)
{
	cleanup_free char *folder = cni_format("%s" FOLDER, cache_directory);
	cleanup_free char *prefix = cni_format("%s/" TEMPORARY "%s,", folder, network);
	cleanup_directory struct directory files = {0};
	cleanup_error struct cni_error ignored = {0};

	if (directory_list(&files, folder, NULL, &ignored))
		return;
	for (size_t i = 0; i < files.count; i++)
		if (!strncmp(files.paths[i], prefix, strlen(prefix)))
			unlink(files.paths[i]);
}
