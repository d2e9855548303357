/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * state.c - which pools and addresses Docker has: a file for each subnet, read and written under a
 * lock of the subnet.
 */
#include "runtimes/ipam/state.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/digest.h"
#include "lib/io.h"
#include "lib/text.h"
#include "lib/json.h"
#include "runtimes/cnirun/directory.h"

/* How many seconds more than a plugin may take: others may wait, too. */
#define LOCK_MORE_SECONDS 40
/* The lock above all. Those of subnets are the bytes behind it in the same file. */
#define LOCK_ALL 0
#define SUFFIX ".json"

/* Whoever may write there could give our addresses away. */
static int check_directory(const char *directory, struct cni_error *err)
{
	struct stat status;

	if (directory_create(directory, err))
		return -1;
	if (!lstat(directory, &status) && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
	    !(status.st_mode & (S_IWGRP | S_IWOTH)))
		return 0;
	return cni_error_set(err, CNI_ERROR_IO,
			     "%s must be a directory of user %u that nobody else may write to",
			     directory, geteuid());
}

/* Two subnets may have one lock, which is rare and costs time only. */
static off_t lock_of(const struct prefix *subnet)
{
	return (off_t)(digest_add(DIGEST_OF_NOTHING, subnet, sizeof(*subnet)) >> 33) + 1;
}

/* Plugins inherit the lock: one that goes on after we were killed holds it until it ends, and what
 * it gives away after that is not missed. It may hang, hence the limit, which is one of a holder
 * that does nothing: Docker waits for as long as many requests before its own take. `path`: what
 * holders write. */
static int take_lock(const struct state *state, off_t which, const char *path,
		     struct cni_error *err)
{
	const struct flock lock = {.l_type = F_WRLCK, .l_start = which, .l_len = 1};
	unsigned int timeout = state->settings->conf.timeout;
	const struct lock_wanted wanted = {
		.fd = state->lock,
		.bytes = &lock,
		.seconds = timeout ? (int)timeout + LOCK_MORE_SECONDS : LOCK_WITHOUT_LIMIT,
		.written = path,
	};

	if (!lock_file_take(&wanted))
		return 0;
	if (errno != EWOULDBLOCK)
		return cni_error_set(err, CNI_ERROR_IO, "cannot lock %s/lock: %s",
				     state->settings->state, strerror(errno));
	return cni_error_set(err, CNI_ERROR_TRY_AGAIN,
			     "%s/lock is held too long, maybe by a plugin that a killed cni-ipam "
			     "has left: `fuser -v %s/lock` tells which",
			     state->settings->state, state->settings->state);
}

static int open_lock(struct state *state, const struct settings *settings, struct cni_error *err)
{
	cleanup_free char *path = cni_format("%s/lock", settings->state);

	state->settings = settings;
	if (check_directory(settings->state, err))
		return -1;
	state->lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
	return state->lock >= 0 ? 0
				: cni_error_set(err, CNI_ERROR_IO, "cannot open %s: %s", path,
						strerror(errno));
}

int state_lock_all(struct state *state, const struct settings *settings, struct cni_error *err)
{
	if (state->lock < 0 && open_lock(state, settings, err))
		return -1;
	return take_lock(state, LOCK_ALL, "", err);
}

/* Explicitly, as what a plugin has left running may have inherited it. Length 0: all behind. */
static void release_lock(const struct state *state, off_t length)
{
	struct flock lock = {.l_type = F_UNLCK, .l_len = length};

	fcntl(state->lock, F_OFD_SETLK, &lock);
}

void state_unlock_all(const struct state *state)
{
	release_lock(state, 1);
}

/* Everything that is read later is of the type that it should be. */
static int check_pool(const char *id, json_t *pool, struct cni_error *err)
{
	json_t *addresses = json_object_get(pool, "addresses"), *address;
	const json_t *id_changing;
	const char *name;
	size_t index;

	if (!json_is_object(json_object_get(pool, "plan")) || !json_is_object(addresses) ||
	    !json_is_array(json_object_get(pool, "changing")))
		return cni_error_set(err, CNI_ERROR_DECODE,
				     "pool \"%s\" lacks plan, addresses or changing", id);
	json_array_foreach (json_object_get(pool, "changing"), index, id_changing)
		if (!json_is_string(id_changing))
			return cni_error_set(err, CNI_ERROR_DECODE,
					     "pool \"%s\": an element of changing is no string",
					     id);
	json_object_foreach (addresses, name, address)
		if (!json_is_string(json_object_get(address, "id")))
			return cni_error_set(err, CNI_ERROR_DECODE,
					     "address \"%s\" of pool \"%s\" has no id", name, id);
	return 0;
}

static int read_file(struct state *state, const char *path, struct cni_error *err)
{
	size_t length;
	cleanup_free char *text = directory_read_file(path, &length, err);
	const char *id;
	json_t *pool;

	if (!text)
		return -1;
	state->root = cni_json_parse_object(text, length, path, err);
	if (!state->root)
		return -1;
	state->pools = json_object_get(state->root, "pools");
	if (!json_is_object(state->pools))
		return cni_error_set(err, CNI_ERROR_DECODE, "no \"pools\"");
	json_object_foreach (state->pools, id, pool)
		if (check_pool(id, pool, err))
			return -1;
	return 0;
}

static char *path_of(const struct state *state, const char *suffix)
{
	char name[PREFIX_TEXT_SIZE];

	return cni_format("%s/%s%s", state->settings->state,
			  prefix_format_name(&state->subnet, name), suffix);
}

int state_open(struct state *state, const struct settings *settings, const struct prefix *subnet,
	       struct cni_error *err)
{
	cleanup_free char *path = NULL;
	const char *driver;

	if (open_lock(state, settings, err))
		return -1;
	state->subnet = *subnet;
	path = path_of(state, SUFFIX);
	if (take_lock(state, lock_of(subnet), path, err))
		return -1;
	if (access(path, F_OK) && errno == ENOENT) {
		state->root = json_pack("{s:{}}", "pools");
		state->pools = json_object_get(state->root, "pools");
	} else if (read_file(state, path, err)) {
		return cni_error_wrap(err,
				      "%s cannot be used: mend it, or move it away, then "
				      "`cni-ipam reconcile` makes it again from what Docker has",
				      path);
	}
	driver = json_string_value(json_object_get(state->root, "driver"));
	if (driver && strcmp(driver, settings->driver) != 0)
		return cni_error_set(
			err, CNI_ERROR_INVALID_ENVIRONMENT,
			"%s is of the driver \"%s\", not of \"%s\": give the --socket of that "
			"driver, or another --state",
			path, driver, settings->driver);
	json_object_set_new(state->root, "driver", json_string(settings->driver));
	return 0;
}

/* The name of a file, without its end. */
static int read_name(char *name, struct prefix *subnet)
{
	name[strlen(name) - strlen(SUFFIX)] = '\0';
	for (char *c = name; *c; c++)
		*c = (char)(*c == '-' ? ':' : *c == '_' ? '/' : *c);
	return prefix_parse(name, subnet);
}

json_t *state_subnets(const struct settings *settings, struct cni_error *err)
{
	static const char *const suffixes[] = {SUFFIX, NULL};
	cleanup_directory struct directory files = {0};
	char text[PREFIX_TEXT_SIZE];
	struct prefix subnet;
	json_t *subnets;

	if (directory_list(&files, settings->state, suffixes, err))
		return NULL;
	subnets = json_array();
	for (size_t i = 0; i < files.count; i++) {
		if (!read_name(strrchr(files.paths[i], '/') + 1, &subnet))
			json_array_append_new(subnets, json_string(prefix_format(&subnet, text)));
	}
	return subnets;
}

int state_write(const struct state *state, struct cni_error *err)
{
	bool is_used = json_object_size(state->pools);
	cleanup_free char *text = is_used ? json_dumps(state->root, JSON_INDENT(1)) : NULL;
	cleanup_free char *path = path_of(state, SUFFIX), *temporary = path_of(state, ".new");

	/* Only the holder of the lock is here. */
	if (!directory_replace_file(path, temporary, text, 0600, true))
		return 0;
	return cni_error_set(err, CNI_ERROR_IO, "cannot write %s: %s", path, strerror(errno));
}

void state_close(struct state *state)
{
	json_decref(state->root);
	if (state->lock >= 0) {
		release_lock(state, 0);
		close(state->lock);
	}
	*state = (struct state)STATE_NONE;
}
