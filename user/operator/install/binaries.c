/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* binaries.c - our binary in a directory of plugins. */
#include "operator/install/binaries.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "datapath/load/pins.h"

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

/* Of any version: every one names the directory of its pins, and no other plugin does. */
static bool is_ours(const struct directory *directory, const char *name)
{
	cleanup_file struct file file = FILE_NONE;
	cleanup_error struct cni_error ignored = {0};

	return !file_read(directory, name, &file, &ignored) && file.text &&
	       memmem(file.text, file.length, PINS_ROOT, strlen(PINS_ROOT));
}

bool binary_is_self(const struct directory *directory, const char *name, const struct file *self)
{
	cleanup_file struct file file = FILE_NONE;
	cleanup_error struct cni_error ignored = {0};

	return !file_read(directory, name, &file, &ignored) && file.text &&
	       (file.status.st_mode & 0555) == 0555 && file.length == self->length &&
	       !memcmp(file.text, self->text, file.length);
}

int binary_put(const struct directory *directory, const char *name, const struct file *self,
	       struct cni_error *err)
{
	if (binary_is_self(directory, name, self))
		return 0;
	return file_put(directory, name, self, NULL, err) ? -1 : 1;
}

static int refuse_link(const struct directory *directory, const char *target, struct cni_error *err)
{
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "%s/" ALIAS " is a link to %s, which may look at the name under which"
			     " it is run: --alias is not possible there; install without it",
			     directory->path, target);
}

bool alias_is_put(const struct directory *directory, const struct file *self)
{
	char target[PATH_MAX];

	return is_link(directory, ALIAS, target) ? !strcmp(target, OUR_BINARY)
						 : binary_is_self(directory, ALIAS, self);
}

/* There is none, or it is ours, of an older version. */
static int keep_reference(const struct directory *directory, struct cni_error *err)
{
	cleanup_file struct file reference = FILE_NONE;

	if (!is_there(directory, ALIAS) || is_ours(directory, ALIAS))
		return 0;
	if (file_read(directory, ALIAS, &reference, err))
		return -1;
	return file_put(directory, KEPT_REFERENCE, &reference, &reference, err);
}

int alias_put(const struct directory *directory, const struct file *self, struct cni_error *err)
{
	char target[PATH_MAX];

	if (is_link(directory, ALIAS, target))
		return strcmp(target, OUR_BINARY) != 0 ? refuse_link(directory, target, err) : 0;
	return keep_reference(directory, err) ? -1 : binary_put(directory, ALIAS, self, err);
}

int alias_undo(const struct directory *directory, struct cni_error *err)
{
	bool is_kept = is_there(directory, KEPT_REFERENCE), ours = is_ours(directory, ALIAS);
	char target[PATH_MAX];

	/* A link is somebody else's; install makes none. */
	if (!(ours || is_kept) || is_link(directory, ALIAS, target))
		return 0;
	if (is_kept && (ours || !is_there(directory, ALIAS)))
		return file_move(directory, KEPT_REFERENCE, ALIAS, err) ? -1 : 1;
	/* Or some agent has put another one there since. */
	return file_remove(directory, ours ? ALIAS : KEPT_REFERENCE, err) ? -1 : 1;
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
