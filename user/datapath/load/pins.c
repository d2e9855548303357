/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* pins.c - the directory that holds one host's maps and programs. */
#include "datapath/load/pins.h"

#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "datapath/load/bpf_error.h"
#include "lib/error.h"
#include "datapath/load/lock.h"

/* A directory, a slash and an object's name. */
#define PIN_PATH_SIZE (PIN_DIRECTORY_SIZE + 32)

enum belongs {
	BELONGS_TO_US,
	BELONGS_TO_OTHER,
	BELONGS_TO_NOBODY, /* it does not exist, or has no meta */
	BELONGS_UNREADABLE,
};

static void object_path(char path[PIN_PATH_SIZE], const char *directory, const char *name)
{
	snprintf(path, PIN_PATH_SIZE, "%s/%s", directory, name);
}

/* Programs first, meta last. */
static const char *object_name(int object)
{
	if (object < PROGRAM_COUNT)
		return program_name((enum program_number)object);
	return map_name((enum map_number)(object - PROGRAM_COUNT));
}

static int open_path(const char *directory, const char *name)
{
	char path[PIN_PATH_SIZE];

	object_path(path, directory, name);
	return bpf_obj_get(path);
}

/* In a directory without meta a program may be left, which uses meta. */
static int open_meta(const char *directory)
{
	int fd = open_path(directory, map_name(MAP_META));

	for (int program = 0; fd < 0 && errno == ENOENT && program < PROGRAM_COUNT; program++) {
		cleanup_close int program_fd =
			open_path(directory, program_name((enum program_number)program));
		struct objects used;

		if (program_fd < 0)
			continue;
		objects_clear(&used);
		objects_open_maps_of(program_fd, used.maps);
		fd = used.maps[MAP_META];
		used.maps[MAP_META] = -1;
		objects_close(&used);
		errno = ENOENT;
	}
	return fd;
}

static enum belongs whose_directory(const char *directory, uint64_t netns_cookie, struct pins *pins)
{
	cleanup_close_pointer(&pins->meta);
	pins->has_head = false;
	pins->meta = open_meta(directory);
	if (pins->meta < 0)
		return errno == ENOENT ? BELONGS_TO_NOBODY : BELONGS_UNREADABLE;
	if (meta_head_read(pins->meta, &pins->head, &pins->meta_has_our_shape))
		return errno == EINVAL ? BELONGS_TO_NOBODY : BELONGS_UNREADABLE;
	pins->has_head = true;
	return pins->head.netns_cookie == netns_cookie ? BELONGS_TO_US : BELONGS_TO_OTHER;
}

int pins_find(uint64_t netns_cookie, struct pins *pins, struct cni_error *err)
{
	enum belongs root;
	int owner;

	snprintf(pins->directory, PIN_DIRECTORY_SIZE, PINS_ROOT);
	if (bpffs_verify(err))
		return -1;
	owner = bpffs_owner(PINS_ROOT, err);
	if (owner < 0)
		return -1;
	/* What belongs to another user is not even looked at. */
	if (owner == OWNER_OTHER)
		warning(PINS_ROOT " does not belong to root, and is not used; the next ADD moves it"
				  " away; `chmod 0700 " BPFFS "` keeps other users out");
	pins->usable = owner == OWNER_ROOT;
	if (!pins->usable)
		return 0;
	root = whose_directory(PINS_ROOT, netns_cookie, pins);
	if (root == BELONGS_UNREADABLE) {
		int saved = errno;

		pins->usable = bpffs_is_mounted();
		return pins->usable
			       ? bpf_error_set(err, saved, "cannot read the maps in " PINS_ROOT)
			       : 0;
	}
	if (root == BELONGS_TO_US)
		return 0;
	snprintf(pins->directory, PIN_DIRECTORY_SIZE, PINS_ROOT "/" NETNS_DIRECTORY "%" PRIu64,
		 netns_cookie);
	if (whose_directory(pins->directory, netns_cookie, pins) == BELONGS_TO_US ||
	    root == BELONGS_TO_OTHER)
		return 0;
	snprintf(pins->directory, PIN_DIRECTORY_SIZE, PINS_ROOT);
	whose_directory(PINS_ROOT, netns_cookie, pins);
	return 0;
}

/* False: something else is pinned under its name. */
static bool keep_object(struct objects *objects, int object, int fd)
{
	enum map_number map = (enum map_number)(object - PROGRAM_COUNT);

	if (object >= PROGRAM_COUNT) {
		if (!map_has_our_shape(map, fd))
			return false;
		objects->maps[map] = fd;
		return true;
	}
	objects->program_ids[object] = program_id_of((enum program_number)object, fd);
	if (!objects->program_ids[object])
		return false;
	objects->programs[object] = fd;
	return true;
}

/* For a directory the kernel says what it says of missing rights. */
static void refuse_pin(const char *directory, const char *name, struct cni_error *err)
{
	int reason = errno;
	char path[PIN_PATH_SIZE];
	struct stat status;

	object_path(path, directory, name);
	if (!stat(path, &status) && S_ISDIR(status.st_mode))
		reason = EISDIR;
	bpf_error_set(err, reason, "cannot open what is pinned at %s", path);
}

/* Returns whether all objects are pinned there. */
static bool are_all_listed(const char *directory, uint32_t *links)
{
	cleanup_listing DIR *listing = opendir(directory);
	struct dirent *entry;
	int count = 0;

	*links = 0;
	while (listing && (entry = readdir(listing))) {
		for (int object = 0; object < OBJECT_COUNT; object++)
			count += !strcmp(entry->d_name, object_name(object));
		for (int link = 0; link < SOCKET_PROGRAM_COUNT; link++)
			if (!strcmp(entry->d_name, socket_program_name(link)))
				*links |= 1U << link;
	}
	return count == OBJECT_COUNT;
}

/* A load pins its programs in their order: where its last one is, all that are pinned are of it. */
static bool has_programs_of_last_load(const char *directory, const struct objects *objects)
{
	const enum program_number last = PROGRAM_COUNT - 1;
	cleanup_close int fd = open_path(directory, program_name(last));

	return fd >= 0 && program_id_of(last, fd) == objects->program_ids[last];
}

_Static_assert(OBJECT_COUNT <= META_OBJECTS, "meta has room for all ids");

/* All maps live as long as one of the programs, so that one map tells whether the ids are still
 * right; each command needs that of attachments. An ADD puts programs at hooks, and so needs those
 * that are pinned here to be of the last load; a DEL does not. */
static bool open_by_ids(struct pins *pins, bool with_programs, struct objects *objects)
{
	uint32_t only = 0;
	struct meta meta;

	if (!pins->has_head || !pins->meta_has_our_shape ||
	    bpf_map_lookup_elem(pins->meta, &only, &meta) || meta.layout != LAYOUT ||
	    !meta.complete)
		return false;
	memcpy(objects->program_ids, meta.object_ids, sizeof(objects->program_ids));
	memcpy(objects->map_ids, meta.object_ids + PROGRAM_COUNT, sizeof(objects->map_ids));
	if (map_fd(objects, MAP_ATTACHMENTS) < 0 ||
	    (with_programs && !has_programs_of_last_load(pins->directory, objects))) {
		objects_close(objects);
		return false;
	}
	objects->maps[MAP_META] = pins->meta;
	pins->meta = -1;
	return true;
}

/* Meta is on each BPF file system on which this set was ever pinned, the programs of the last load
 * on one alone: where that was mounted over another one for a while, those in sight are older. */
static bool are_of_last_load(const struct pins *pins, const struct objects *objects)
{
	uint32_t only = 0;
	struct meta meta;

	return pins->meta_has_our_shape && !bpf_map_lookup_elem(pins->meta, &only, &meta) &&
	       !memcmp(objects->program_ids, meta.object_ids, sizeof(objects->program_ids));
}

/* Repair needs all that is there. */
static int open_each(const struct pins *pins, struct objects *objects, struct pins_found *found,
		     struct cni_error *err)
{
	for (int object = 0; pins->usable && object < OBJECT_COUNT; object++) {
		int fd = open_path(pins->directory, object_name(object));

		if (fd < 0 && errno != ENOENT) {
			refuse_pin(pins->directory, object_name(object), err);
			objects_close(objects);
			return -1;
		}
		if (fd < 0)
			continue;
		if (keep_object(objects, object, fd)) {
			found->count++;
			continue;
		}
		close(fd);
		/* A program is overwritten; a map may have data that is needed. */
		if (object >= PROGRAM_COUNT)
			found->foreign = object_name(object);
	}
	found->is_of_last_load = pins->has_head && are_of_last_load(pins, objects);
	return 0;
}

int pins_open(struct pins *pins, enum datapath_use use, struct objects *objects,
	      struct pins_found *found, struct cni_error *err)
{
	bool is_listed = use == DATAPATH_WORK_LISTED;

	objects_clear(objects);
	*found = (struct pins_found){0};
	if ((is_listed && are_all_listed(pins->directory, &found->links)) ||
	    use == DATAPATH_WORK_BY_META)
		found->by_ids = open_by_ids(pins, is_listed, objects);
	if (!found->by_ids)
		return open_each(pins, objects, found, err);
	found->count = OBJECT_COUNT;
	found->is_of_last_load = true;
	return 0;
}

/* Returns whether it has removed something: what it reads meanwhile may not be all. */
static bool remove_all_but_meta(const char *directory)
{
	cleanup_listing DIR *listing = opendir(directory);
	char path[PIN_PATH_SIZE];
	struct dirent *entry;
	bool removed = false;

	while (listing && (entry = readdir(listing)))
		if (strcmp(entry->d_name, map_name(MAP_META)) != 0 &&
		    snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name) <
			    (int)sizeof(path))
			removed |= !unlink(path);
	return removed;
}

/* Removes all pins, also those of other versions, meta last. 0, or -1 and errno. */
static int empty_directory(const char *directory)
{
	char meta[PIN_PATH_SIZE];

	while (remove_all_but_meta(directory)) {
	}
	object_path(meta, directory, map_name(MAP_META));
	return unlink(meta) && errno != ENOENT ? -1 : 0;
}

static int pin_and_move(const char *directory, const struct objects *objects, struct cni_error *err)
{
	char source[PIN_PATH_SIZE], target[PIN_PATH_SIZE];

	for (int object = 0; object < OBJECT_COUNT; object++) {
		object_path(source, PINS_LOADING, object_name(object));
		if (bpf_obj_pin(object < PROGRAM_COUNT ? objects->programs[object]
						       : objects->maps[object - PROGRAM_COUNT],
				source))
			return bpf_error_set(err, errno, "cannot pin %s", source);
	}
	if (!rename(PINS_LOADING, directory))
		return 0;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return bpf_error_set(err, errno, "cannot move " PINS_LOADING " to %s", directory);
	/* It has the directories of other hosts, or what is left of a damaged set. */
	for (int object = 0; object < OBJECT_COUNT; object++) {
		object_path(source, PINS_LOADING, object_name(object));
		object_path(target, directory, object_name(object));
		if (rename(source, target))
			return bpf_error_set(err, errno, "cannot move %s to %s", source, target);
	}
	rmdir(PINS_LOADING);
	return 0;
}

int pins_write(const char *directory, const struct objects *objects, struct cni_error *err)
{
	int result;

	empty_directory(PINS_LOADING); /* a killed loader may have left something */
	result = pin_and_move(directory, objects, err);
	if (result)
		empty_directory(PINS_LOADING);
	return result;
}

/* A round fails only if another process has succeeded. */
#define ROUNDS 1000

/* Where all users may make directories, another user's directory must not stop us, and we must not
 * use what is pinned in it. */
static int move_aside(const char *path, struct cni_error *err)
{
	uint32_t number = 0;
	char to[128];

	if (getrandom(&number, sizeof(number), 0) < 0)
		number = 0;
	snprintf(to, sizeof(to), BPFFS "/not-of-" PIN_DIRECTORY "-%08x", number);
	if (rename(path, to) && errno != ENOENT)
		return bpf_error_set(err, errno,
				     "cannot move %s, which is not root's, out of the way", path);
	warning("%s did not belong to root, and was moved to %s; `chmod 0700 " BPFFS
		"` keeps other users out",
		path, to);
	return 0;
}

static int refuse_rounds(const char *path, struct cni_error *err)
{
	return cni_error_set(err, CNI_ERROR_TRY_AGAIN,
			     "%s is removed or replaced again and again; try again later", path);
}

/* Where all users may make directories, only root can move or remove root's (the sticky bit), so a
 * directory that is root's stays so. */
static int own_directory(const char *path, struct cni_error *err)
{
	for (int round = 0; round < ROUNDS; round++) {
		int owner;

		if (mkdir(path, 0700) && errno != EEXIST)
			return errno == EROFS
				       ? cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
						       BPFFS " is mounted read-only: `mount -o "
							     "remount,rw " BPFFS "`")
				       : bpf_error_set(err, errno, "cannot make the directory %s",
						       path);
		owner = bpffs_owner(path, err);
		if (owner < 0)
			return -1;
		if (owner == OWNER_ROOT)
			return 0;
		if (owner == OWNER_OTHER && move_aside(path, err))
			return -1;
	}
	return refuse_rounds(path, err);
}

static bool is_still_there(int fd)
{
	struct stat held, named;

	return !fstat(fd, &held) && !lstat(PINS_LOADING, &named) && held.st_ino == named.st_ino &&
	       held.st_dev == named.st_dev;
}

int pins_lock_take(int *lock, struct cni_error *err)
{
	for (int round = 0; *lock < 0 && round < ROUNDS; round++) {
		cleanup_close int fd = -1;

		if (own_directory(PINS_LOADING, err))
			return -1;
		fd = open(PINS_LOADING, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 && errno != ENOENT)
			return bpf_error_set(err, errno, "cannot open " PINS_LOADING);
		if (fd >= 0 && lock_wait(fd, "loading into " BPFFS, err))
			return -1;
		/* Otherwise it was removed, or moved to its place, meanwhile. */
		if (fd >= 0 && is_still_there(fd)) {
			*lock = fd;
			fd = -1;
		}
	}
	if (*lock < 0)
		return refuse_rounds(PINS_LOADING, err);
	/* rename() replaces an empty directory. */
	return own_directory(PINS_ROOT, err);
}

void pins_lock_release(int *lock)
{
	if (*lock >= 0) {
		if (is_still_there(*lock))
			rmdir(PINS_LOADING);
		rmdir(PINS_ROOT); /* if nothing was loaded */
	}
	cleanup_close_pointer(lock);
}

int pins_remove(const char *directory, struct cni_error *err)
{
	int owner = bpffs_owner(directory, err);

	if (owner != OWNER_ROOT)
		return owner < 0 ? -1 : 0;
	empty_directory(PINS_LOADING);
	if (empty_directory(directory))
		return bpf_error_set(err, errno, "cannot remove %s/%s", directory,
				     map_name(MAP_META));
	/* The lock's release removes PINS_ROOT, where no other host has anything in it. */
	if (strcmp(directory, PINS_ROOT) != 0)
		rmdir(directory);
	return 0;
}
