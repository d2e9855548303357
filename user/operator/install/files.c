/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* files.c - files of a directory that other programs read at any instant. */
#include "operator/install/files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "datapath/load/lock.h"
#include "lib/cleanup.h"
#include "lib/io.h"
#include "lib/text.h"

#define NEW_NAME ".bpf-portmap-new"
#define LOCK_NAME ".bpf-portmap-lock"
#define ROUNDS 100
#define FILE_LIMIT ((size_t)64 << 20)

static int fail(const struct directory *directory, const char *name, const char *what,
		struct cni_error *err)
{
	return cni_error_set(err, CNI_ERROR_IO, "cannot %s %s/%s: %s", what, directory->path, name,
			     strerror(errno));
}

int directory_open(struct directory *directory, const char *path, struct cni_error *err)
{
	directory_close(directory);
	directory->of_network = false;
	snprintf(directory->path, sizeof(directory->path), "%s", path);
	directory->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory->fd >= 0)
		return 0;
	return cni_error_set(err, CNI_ERROR_IO, "cannot open the directory %s: %s", path,
			     strerror(errno));
}

void directory_close(struct directory *directory)
{
	cleanup_close_pointer(&directory->fd);
	directory->fd = -1;
}

void directory_path(const struct directory *directory, const char *name, char path[PATH_MAX])
{
	if (snprintf(path, PATH_MAX, "%s/%s", directory->path, name) >= PATH_MAX)
		path[PATH_MAX - 1] = '\0';
}

void directory_say(const struct directory *directory, const char *name, const char *format, ...)
{
	cleanup_free char *text = NULL, *line = NULL;
	va_list arguments;

	va_start(arguments, format);
	text = cni_format_list(format, arguments);
	va_end(arguments);
	line = cni_format("%s/%s: %s", directory->path, name, text);
	cni_printable(line, "");
	puts(line);
}

static bool is_inode(const struct directory *directory, const char *name, int fd)
{
	struct stat there, ours;

	return !fstatat(directory->fd, name, &there, AT_SYMLINK_NOFOLLOW) && !fstat(fd, &ours) &&
	       there.st_ino == ours.st_ino && there.st_dev == ours.st_dev;
}

void directory_sweep(const struct directory *directory)
{
	unlinkat(directory->fd, NEW_NAME, 0);
}

/* Of mode 0600, so that no other user can keep us waiting. */
int directory_lock(const struct directory *directory, int *lock, struct cni_error *err)
{
	for (int i = 0; i < ROUNDS; i++) {
		cleanup_close int fd = openat(directory->fd, LOCK_NAME,
					      O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

		if (fd < 0)
			return fail(directory, LOCK_NAME, "make", err);
		if (lock_wait(fd, directory->path, err))
			return -1;
		/* Otherwise whoever had it has removed it. */
		if (is_inode(directory, LOCK_NAME, fd)) {
			*lock = fd;
			fd = -1;
			return 0;
		}
	}
	return cni_error_set(err, CNI_ERROR_TRY_AGAIN,
			     "%s/" LOCK_NAME " is removed again and again", directory->path);
}

void directory_unlock(const struct directory *directory, int *lock)
{
	if (*lock >= 0)
		unlinkat(directory->fd, LOCK_NAME, 0);
	cleanup_close_pointer(lock);
	*lock = -1;
}

int file_read(const struct directory *directory, const char *name, struct file *file,
	      struct cni_error *err)
{
	char path[PATH_MAX];

	file_release(file);
	directory_path(directory, name, path);
	file->fd = openat(directory->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (file->fd < 0 && errno == ENOENT)
		return 0;
	if (file->fd < 0 && errno == ELOOP)
		return cni_error_set(err, CNI_ERROR_IO,
				     "%s is a symbolic link, and is not followed: name the file"
				     " that it leads to (--list)",
				     path);
	if (file->fd < 0 || fstat(file->fd, &file->status))
		return fail(directory, name, "open", err);
	if (!S_ISREG(file->status.st_mode))
		return cni_error_set(err, CNI_ERROR_IO, "%s is no regular file", path);
	file->text = cni_read_all(file->fd, FILE_LIMIT, path, &file->length, err);
	return file->text ? 0 : -1;
}

void file_release(struct file *file)
{
	cleanup_close_pointer(&file->fd);
	free(file->text);
	*file = (struct file)FILE_NONE;
}

static int set_owner(int fd, const struct stat *like)
{
	struct stat now;

	if (fstat(fd, &now))
		return -1;
	/* Where nothing is to be changed, no capability is needed. */
	if (now.st_uid == like->st_uid && now.st_gid == like->st_gid)
		return 0;
	return fchown(fd, like->st_uid, like->st_gid);
}

static int set_attribute(int fd, const char *name, int like)
{
	char present[XATTR_SIZE_MAX], wanted[XATTR_SIZE_MAX];
	ssize_t length = fgetxattr(fd, name, present, sizeof(present));
	ssize_t wanted_length = fgetxattr(like, name, wanted, sizeof(wanted));

	if (wanted_length < 0)
		return length < 0 || errno != ENODATA ? 0 : fremovexattr(fd, name);
	/* Where it is the same, no right to change it is needed. */
	if (length == wanted_length && !memcmp(present, wanted, (size_t)length))
		return 0;
	return fsetxattr(fd, name, wanted, (size_t)wanted_length, 0);
}

/* Who may read it, and change it: mode, ACL, the label of SELinux, and the owner; that last, as
 * only the owner may set the others without a capability. */
static int set_rights(int fd, const struct file *like)
{
	if (fchmod(fd, like->status.st_mode & 07777) ||
	    set_attribute(fd, "system.posix_acl_access", like->fd) ||
	    set_attribute(fd, "security.selinux", like->fd))
		return -1;
	return set_owner(fd, &like->status);
}

int file_move(const struct directory *directory, const char *from, const char *to,
	      struct cni_error *err)
{
	if (renameat(directory->fd, from, directory->fd, to))
		return fail(directory, to, "replace", err);
	fsync(directory->fd);
	return 0;
}

static bool is_as_read(const struct directory *directory, const char *name, const struct file *file)
{
	const struct stat *read = &file->status;
	struct stat now;

	return !fstatat(directory->fd, name, &now, AT_SYMLINK_NOFOLLOW) &&
	       now.st_ino == read->st_ino && now.st_dev == read->st_dev &&
	       now.st_size == read->st_size && now.st_mtim.tv_sec == read->st_mtim.tv_sec &&
	       now.st_mtim.tv_nsec == read->st_mtim.tv_nsec;
}

static int write_new(const struct directory *directory, const char *text, size_t length,
		     const struct file *like, struct cni_error *err)
{
	cleanup_close int fd = -1;

	directory_sweep(directory);
	fd = openat(directory->fd, NEW_NAME, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return fail(directory, NEW_NAME, "make", err);
	if (cni_write_all(fd, text, length) || (like ? set_rights(fd, like) : fchmod(fd, 0755)) ||
	    fsync(fd))
		return fail(directory, NEW_NAME, "write", err);
	return 0;
}

int file_put(const struct directory *directory, const char *name, const struct file *content,
	     const struct file *like, struct cni_error *err)
{
	if (!write_new(directory, content->text, content->length, like, err) &&
	    !file_move(directory, NEW_NAME, name, err))
		return 0;
	directory_sweep(directory);
	return -1;
}

int file_replace(const struct directory *directory, const char *name, const struct file *seen,
		 const char *text, struct cni_error *err)
{
	if (!write_new(directory, text, strlen(text), seen, err)) {
		if (!is_as_read(directory, name, seen))
			cni_error_set(err, CNI_ERROR_TRY_AGAIN,
				      "%s/%s was changed meanwhile: run it again", directory->path,
				      name);
		else if (!file_move(directory, NEW_NAME, name, err))
			return 0;
	}
	directory_sweep(directory);
	return -1;
}

int file_remove(const struct directory *directory, const char *name, struct cni_error *err)
{
	if (unlinkat(directory->fd, name, 0) && errno != ENOENT)
		return fail(directory, name, "remove", err);
	fsync(directory->fd);
	return 0;
}
