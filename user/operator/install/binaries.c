/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* binaries.c - our binary in a directory of plugins. */
#include "operator/install/binaries.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "datapath/load/pins.h"
#include "lib/cleanup.h"

static int open_binary(const struct directory *directory, const char *name)
{
	return openat(directory->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

static bool is_link(const struct directory *directory, const char *name, char target[PATH_MAX])
{
	ssize_t length = readlinkat(directory->fd, name, target, PATH_MAX - 1);

	target[length > 0 ? length : 0] = '\0';
	return length > 0;
}

static bool is_there(const struct directory *directory, const char *name)
{
	return !faccessat(directory->fd, name, F_OK, AT_SYMLINK_NOFOLLOW);
}

/* An agent may be writing the file, so it is read and not mapped. */
static bool contains(int fd, const char *text)
{
	size_t wanted = strlen(text), kept = 0;
	char bytes[65536];
	off_t at = 0;
	ssize_t got;

	while (fd >= 0 && (got = pread(fd, bytes + kept, sizeof(bytes) - kept, at)) > 0) {
		if (memmem(bytes, kept + (size_t)got, text, wanted))
			return true;
		at += got;
		got += (ssize_t)kept;
		kept = (size_t)got < wanted - 1 ? (size_t)got : wanted - 1;
		memmove(bytes, bytes + got - kept, kept);
	}
	return false;
}

static bool are_equal(int one, int other)
{
	char left[65536], right[65536];
	ssize_t got = 1;

	for (off_t at = 0; got > 0; at += got) {
		got = pread(one, left, sizeof(left), at);
		if (got < 0 || pread(other, right, sizeof(right), at) != got ||
		    memcmp(left, right, (size_t)got) != 0)
			return false;
	}
	return true;
}

/* Of any version: every one names the directory of its pins, and no other plugin does. */
static bool is_ours(const struct directory *directory, const char *name)
{
	cleanup_close int fd = open_binary(directory, name);

	return contains(fd, PINS_ROOT);
}

bool binary_is_self(const struct directory *directory, const char *name, int self)
{
	cleanup_close int fd = open_binary(directory, name);
	struct stat status, ours;

	return fd >= 0 && !fstat(fd, &status) && !fstat(self, &ours) && S_ISREG(status.st_mode) &&
	       (status.st_mode & 0555) == 0555 && status.st_size == ours.st_size &&
	       are_equal(fd, self);
}

int binary_put(const struct directory *directory, const char *name, int self, struct cni_error *err)
{
	if (binary_is_self(directory, name, self))
		return 0;
	return file_install(directory, name, self, err) ? -1 : 1;
}

static int refuse_link(const struct directory *directory, const char *target, struct cni_error *err)
{
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "%s/" ALIAS " is a link to %s, which may look at the name under which"
			     " it is run: --alias is not possible there; install without it",
			     directory->path, target);
}

bool alias_is_put(const struct directory *directory, int self)
{
	char target[PATH_MAX];

	return is_link(directory, ALIAS, target) ? !strcmp(target, OUR_BINARY)
						 : binary_is_self(directory, ALIAS, self);
}

int alias_put(const struct directory *directory, int self, struct cni_error *err)
{
	char target[PATH_MAX];

	if (is_link(directory, ALIAS, target))
		return strcmp(target, OUR_BINARY) != 0 ? refuse_link(directory, target, err) : 0;
	/* A second name first, and then ours over the first one. */
	if (is_there(directory, ALIAS) && !is_ours(directory, ALIAS) &&
	    file_link(directory, ALIAS, KEPT_REFERENCE, err))
		return -1;
	return binary_put(directory, ALIAS, self, err);
}

int alias_undo(const struct directory *directory, struct cni_error *err)
{
	char target[PATH_MAX];

	if (is_there(directory, KEPT_REFERENCE) && !is_there(directory, ALIAS))
		return file_move(directory, KEPT_REFERENCE, ALIAS, err) ? -1 : 1;
	if (!is_ours(directory, ALIAS)) {
		/* Somebody made a link there; install makes none. */
		if (!is_there(directory, KEPT_REFERENCE) || is_link(directory, ALIAS, target))
			return 0;
		/* Some agent has put another one there since. */
		return file_remove(directory, KEPT_REFERENCE, err) ? -1 : 1;
	}
	if (is_there(directory, KEPT_REFERENCE))
		return file_move(directory, KEPT_REFERENCE, ALIAS, err) ? -1 : 1;
	return file_remove(directory, ALIAS, err) ? -1 : 1;
}

int binary_remove(const struct directory *directory, struct cni_error *err)
{
	if (!is_ours(directory, OUR_BINARY))
		return 0;
	return file_remove(directory, OUR_BINARY, err) ? -1 : 1;
}

int binaries_check_package(const struct directory *directory, struct cni_error *err)
{
	char target[PATH_MAX];

	if (!is_link(directory, ALIAS, target) || strcmp(target, OUR_BINARY) != 0)
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "%s/" ALIAS " is a link to " OUR_BINARY ", as the package"
			     " bpf-portmap-as-portmap makes it: remove that package first",
			     directory->path);
}
