/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* files.c - files of a directory that other programs read at any instant. */
#include "operator/install/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "datapath/load/lock.h"
#include "lib/cleanup.h"
#include "lib/io.h"

#define NEW_BEGIN ".bpf-portmap-"
#define NEW_END ".new"
#define NEW_NAME_SIZE 40
#define LOCK_NAME ".bpf-portmap-lock"
#define ROUNDS 100

static int fail(const struct directory *directory, const char *name, const char *what,
		struct cni_error *err)
{
	return cni_error_set(err, CNI_ERROR_IO, "cannot %s %s/%s: %s", what, directory->path, name,
			     strerror(errno));
}

int directory_open(struct directory *directory, const char *path, struct cni_error *err)
{
	directory_close(directory);
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

static bool is_new_name(const char *name)
{
	size_t length = strlen(name), end = strlen(NEW_END);

	return !strncmp(name, NEW_BEGIN, strlen(NEW_BEGIN)) && length > end &&
	       !strcmp(name + length - end, NEW_END);
}

static bool is_inode(const struct directory *directory, const char *name, int fd)
{
	struct stat there, ours;

	return !fstatat(directory->fd, name, &there, AT_SYMLINK_NOFOLLOW) && !fstat(fd, &ours) &&
	       there.st_ino == ours.st_ino && there.st_dev == ours.st_dev;
}

void directory_sweep(const struct directory *directory)
{
	int fd = openat(directory->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *listing = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;

	if (!listing) {
		cleanup_close_pointer(&fd);
		return;
	}
	while ((entry = readdir(listing)))
		if (is_new_name(entry->d_name))
			unlinkat(directory->fd, entry->d_name, 0);
	closedir(listing);
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
	file->text = cni_read_all(file->fd, CNI_INPUT_LIMIT, path, &file->length, err);
	return file->text ? 0 : -1;
}

void file_release(struct file *file)
{
	cleanup_close_pointer(&file->fd);
	free(file->text);
	*file = (struct file)FILE_NONE;
}

static int create(const struct directory *directory, char name[NEW_NAME_SIZE],
		  struct cni_error *err)
{
	uint64_t number = 0;
	int fd;

	if (getrandom(&number, sizeof(number), 0) < 0)
		return fail(directory, "", "read random bytes for a file in", err);
	snprintf(name, NEW_NAME_SIZE, NEW_BEGIN "%016llx" NEW_END, (unsigned long long)number);
	fd = openat(directory->fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return fail(directory, name, "make", err);
	return fd;
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

/* Returns the file descriptor of a new file with this text and the other one's rights, which is on
 * the disk. */
static int create_text(const struct directory *directory, char name[NEW_NAME_SIZE],
		       const char *text, const struct file *like, struct cni_error *err)
{
	int fd = create(directory, name, err);

	if (fd < 0)
		return -1;
	if (!cni_write_all(fd, text, strlen(text)) && !set_rights(fd, like) && !fsync(fd))
		return fd;
	fail(directory, name, "write", err);
	unlinkat(directory->fd, name, 0);
	close(fd);
	return -1;
}

static bool has_changed(const struct file *file)
{
	cleanup_error struct cni_error ignored = {0};
	cleanup_free char *text = NULL;
	size_t length = 0;

	if (!lseek(file->fd, 0, SEEK_SET))
		text = cni_read_all(file->fd, CNI_INPUT_LIMIT, "it", &length, &ignored);
	return text && (length != file->length || memcmp(text, file->text, length) != 0);
}

/* Whether this is the very file that was read, with the same text. */
static bool is_as_seen(const struct directory *directory, const char *name, const struct file *seen)
{
	struct stat now;

	return !fstatat(directory->fd, name, &now, AT_SYMLINK_NOFOLLOW) &&
	       now.st_ino == seen->status.st_ino && now.st_dev == seen->status.st_dev &&
	       !has_changed(seen);
}

/* An agent may replace or rewrite the file at any instant. So the new file is exchanged for the old
 * one, and then what came out is looked at. Old file systems cannot do that. */
static int exchange(const struct directory *directory, const char *name, const char *new,
		    const struct file *seen)
{
	if (!is_as_seen(directory, name, seen))
		return 1;
	if (renameat2(directory->fd, new, directory->fd, name, RENAME_EXCHANGE)) {
		if (errno == ENOENT)
			return 1;
		if (errno != EINVAL && errno != ENOSYS)
			return -1;
		return renameat(directory->fd, new, directory->fd, name);
	}
	if (is_as_seen(directory, new, seen))
		return 0;
	/* An agent's version, which had to give way to ours. */
	return renameat(directory->fd, new, directory->fd, name) ? -1 : 1;
}

int file_replace(const struct directory *directory, const char *name, const struct file *seen,
		 const char *text, struct cni_error *err)
{
	char new[NEW_NAME_SIZE];
	cleanup_close int fd = create_text(directory, new, text, seen, err);
	int result;

	if (fd < 0)
		return -1;
	result = exchange(directory, name, new, seen);
	if (result < 0)
		fail(directory, name, "replace", err);
	unlinkat(directory->fd, new, 0);
	fsync(directory->fd);
	return result;
}

int file_keep(const struct directory *directory, const char *name, const struct file *seen,
	      struct cni_error *err)
{
	const struct timespec times[] = {seen->status.st_atim, seen->status.st_mtim};
	char new[NEW_NAME_SIZE];
	cleanup_close int fd = -1;
	int result = 0;

	if (!faccessat(directory->fd, name, F_OK, AT_SYMLINK_NOFOLLOW))
		return 0;
	fd = create_text(directory, new, seen->text, seen, err);
	if (fd < 0)
		return -1;
	futimens(fd, times);
	if (linkat(directory->fd, new, directory->fd, name, 0) && errno != EEXIST)
		result = fail(directory, name, "write", err);
	unlinkat(directory->fd, new, 0);
	fsync(directory->fd);
	return result;
}

static int copy_all(int source, int target)
{
	struct stat status;
	off_t at = 0;

	if (fstat(source, &status))
		return -1;
	while (at < status.st_size)
		if (sendfile(target, source, &at, (size_t)(status.st_size - at)) <= 0)
			return -1;
	return 0;
}

int file_install(const struct directory *directory, const char *name, int source,
		 struct cni_error *err)
{
	char new[NEW_NAME_SIZE];
	int result = 0, fd = create(directory, new, err);

	if (fd < 0)
		return -1;
	if (copy_all(source, fd) || fchmod(fd, 0755) || fsync(fd))
		result = fail(directory, new, "write", err);
	/* The kernel runs no file that is open for writing. */
	close(fd);
	if (!result && renameat(directory->fd, new, directory->fd, name))
		result = fail(directory, name, "replace", err);
	if (result)
		unlinkat(directory->fd, new, 0);
	fsync(directory->fd);
	return result;
}

int file_move(const struct directory *directory, const char *from, const char *to,
	      struct cni_error *err)
{
	struct stat one, other;

	if (renameat(directory->fd, from, directory->fd, to))
		return fail(directory, from, "rename", err);
	/* Of two names of one file the kernel removes none. */
	if (!fstatat(directory->fd, from, &one, AT_SYMLINK_NOFOLLOW) &&
	    !fstatat(directory->fd, to, &other, AT_SYMLINK_NOFOLLOW) && one.st_ino == other.st_ino)
		unlinkat(directory->fd, from, 0);
	fsync(directory->fd);
	return 0;
}

int file_link(const struct directory *directory, const char *from, const char *to,
	      struct cni_error *err)
{
	char new[NEW_NAME_SIZE];
	int fd = create(directory, new, err);

	if (fd < 0)
		return -1;
	close(fd);
	unlinkat(directory->fd, new, 0);
	if (linkat(directory->fd, from, directory->fd, new, 0))
		return fail(directory, from, "link", err);
	return file_move(directory, new, to, err);
}

int file_remove(const struct directory *directory, const char *name, struct cni_error *err)
{
	if (unlinkat(directory->fd, name, 0) && errno != ENOENT)
		return fail(directory, name, "remove", err);
	fsync(directory->fd);
	return 0;
}
