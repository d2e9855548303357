/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * state.c - which pools and addresses Docker has: a file, read and written under a lock.
 */
#include "ipam/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/io.h"
#include "lib/text.h"
#include "cni/json.h"
#include "cnirun/directory.h"

#define LOCK_MORE_SECONDS 5
#define TRIES_PER_SECOND 100

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

/* Plugins inherit the lock: one that goes on after we were killed holds it until it ends, and what
 * it gives away after that is not missed. It may hang, hence the limit. */
int state_lock(struct state *state, const struct settings *settings, struct cni_error *err)
{
	cleanup_free char *path = cni_format("%s/lock", settings->state);
	unsigned int timeout = settings->conf.timeout;

	state->settings = settings;
	if (check_directory(settings->state, err))
		return -1;
	state->lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
	if (state->lock < 0)
		return cni_error_set(err, CNI_ERROR_IO, "cannot open %s: %s", path,
				     strerror(errno));
	for (unsigned int i = 0; flock(state->lock, LOCK_EX | LOCK_NB); i++) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return cni_error_set(err, CNI_ERROR_IO, "cannot lock %s: %s", path,
					     strerror(errno));
		if (timeout && i >= (timeout + LOCK_MORE_SECONDS) * TRIES_PER_SECOND)
			return cni_error_set(err, CNI_ERROR_TRY_AGAIN,
					     "%s is held too long, maybe by a plugin that a killed "
					     "cni-ipam has left: `fuser %s` tells which",
					     path, path);
		usleep(1000000 / TRIES_PER_SECOND);
	}
	return 0;
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
	json_array_foreach (json_object_get(pool, "changing"), index, id_changing) {
		if (!json_is_string(id_changing))
			return cni_error_set(err, CNI_ERROR_DECODE,
					     "pool \"%s\": an element of changing is no string",
					     id);
	}
	json_object_foreach (addresses, name, address) {
		if (!json_is_string(json_object_get(address, "id")))
			return cni_error_set(err, CNI_ERROR_DECODE,
					     "address \"%s\" of pool \"%s\" has no id", name, id);
	}
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
	json_object_foreach (state->pools, id, pool) {
		if (check_pool(id, pool, err))
			return -1;
	}
	return 0;
}

static int check_driver(const struct state *state, const char *path, struct cni_error *err)
{
	const char *driver = json_string_value(json_object_get(state->root, "driver"));

	if (!driver || !strcmp(driver, state->settings->driver))
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT,
			     "%s is of the driver \"%s\", not of \"%s\": give the --socket of that "
			     "driver, or another --state",
			     path, driver, state->settings->driver);
}

int state_open(struct state *state, const struct settings *settings, struct cni_error *err)
{
	cleanup_free char *path = cni_format("%s/state.json", settings->state);

	if (state_lock(state, settings, err))
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
	if (check_driver(state, path, err))
		return -1;
	json_object_set_new(state->root, "driver", json_string(settings->driver));
	return 0;
}

/* The directory, too, as a name that was renamed may else be lost with the power. */
static int synchronise(const char *directory)
{
	cleanup_close int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fsync(fd) ? -1 : 0;
}

int state_write(const struct state *state, struct cni_error *err)
{
	cleanup_free char *path = cni_format("%s/state.json", state->settings->state);
	cleanup_free char *temporary = cni_format("%s/state.new", state->settings->state);
	cleanup_free char *text = json_dumps(state->root, JSON_INDENT(1));
	/* Only the holder of the lock is here. */
	cleanup_close int fd =
		open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd >= 0 && !cni_write_all(fd, text, strlen(text)) && !fsync(fd) &&
	    !rename(temporary, path) && !synchronise(state->settings->state))
		return 0;
	cni_error_set(err, CNI_ERROR_IO, "cannot write %s: %s", path, strerror(errno));
	unlink(temporary);
	return -1;
}

void state_close(struct state *state)
{
	json_decref(state->root);
	if (state->lock >= 0) {
		/* Explicitly, as what a plugin has left running may have inherited it. */
		flock(state->lock, LOCK_UN);
		close(state->lock);
	}
	*state = (struct state)STATE_NONE;
}
