/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* binaries.c - our binary in a directory of plugins. */
#include "operator/install/binaries.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "datapath/load/pins.h"
#include "lib/cleanup.h"

/* A file's bytes; NULL: it is none, or empty. */
struct image {
	void *bytes;
	struct stat status;
};

static void image_close(struct image *image)
{
	if (image->bytes)
		munmap(image->bytes, (size_t)image->status.st_size);
}

#define cleanup_image __attribute__((cleanup(image_close)))

static struct image image_of(int fd)
{
	struct image image = {0};

	if (fd >= 0 && !fstat(fd, &image.status) && S_ISREG(image.status.st_mode) &&
	    image.status.st_size)
		image.bytes =
			mmap(NULL, (size_t)image.status.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (image.bytes == MAP_FAILED)
		image.bytes = NULL;
	return image;
}

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

/* Of any version: every one names the directory of its pins, and no other plugin does. */
static bool is_ours(const struct directory *directory, const char *name)
{
	cleanup_close int fd = open_binary(directory, name);
	cleanup_image struct image image = image_of(fd);

	return image.bytes &&
	       memmem(image.bytes, (size_t)image.status.st_size, PINS_ROOT, strlen(PINS_ROOT));
}

static bool is_self(const struct directory *directory, const char *name, int self)
{
	cleanup_close int fd = open_binary(directory, name);
	cleanup_image struct image one = image_of(fd), other = image_of(self);

	return one.bytes && other.bytes && one.status.st_size == other.status.st_size &&
	       (one.status.st_mode & 0555) == 0555 &&
	       !memcmp(one.bytes, other.bytes, (size_t)one.status.st_size);
}

int binary_put(const struct directory *directory, const char *name, int self, struct cni_error *err)
{
	if (is_self(directory, name, self))
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
	if (!is_ours(directory, ALIAS)) {
		/* Some agent has put another one there since. */
		if (!is_there(directory, KEPT_REFERENCE))
			return 0;
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
