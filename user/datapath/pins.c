/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* pins.c - the directory that holds one host's maps and programs. */
#include "datapath/pins.h"

#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cni/cleanup.h"
#include "datapath/bpffs.h"
#include "datapath/refusal.h"

#define ROOT BPFFS "/" PIN_DIRECTORY
/* No dot in it: the BPF file system refuses those. */
#define LOADING_NAME PIN_DIRECTORY "-loading"
#define LOADING BPFFS "/" LOADING_NAME
/* A directory, a slash and an object's name. */
#define PIN_PATH_SIZE (PIN_DIRECTORY_SIZE + 32)

enum belongs {
	BELONGS_TO_US,
	BELONGS_TO_OTHER,
	BELONGS_TO_NOBODY, /* it does not exist, or holds nothing that says whose it is */
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

static int object_fd(const struct objects *objects, int object)
{
	if (object < PROGRAM_COUNT)
		return objects->programs[object];
	return objects->maps[object - PROGRAM_COUNT];
}

static int open_pin(const char *directory, const char *name)
{
	char path[PIN_PATH_SIZE];

	object_path(path, directory, name);
	return bpf_obj_get(path);
}

/* A directory without meta may still have a program, which knows its meta. */
static int open_meta(const char *directory)
{
	int fd = open_pin(directory, map_name(MAP_META));

	for (int program = 0; fd < 0 && errno == ENOENT && program < PROGRAM_COUNT; program++) {
		cleanup_close int program_fd =
			open_pin(directory, program_name((enum program_number)program));
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

static enum belongs whose_directory(const char *directory, uint64_t netns_cookie)
{
	cleanup_close int meta = open_meta(directory);
	struct meta_head head;

	if (meta < 0)
		return errno == ENOENT ? BELONGS_TO_NOBODY : BELONGS_UNREADABLE;
	if (meta_head_read(meta, &head))
		return errno == EINVAL ? BELONGS_TO_NOBODY : BELONGS_UNREADABLE;
	return head.netns_cookie == netns_cookie ? BELONGS_TO_US : BELONGS_TO_OTHER;
}

int pins_find_directory(uint64_t netns_cookie, char directory[PIN_DIRECTORY_SIZE],
			struct cni_error *err)
{
	enum belongs root = whose_directory(ROOT, netns_cookie);

	if (root == BELONGS_UNREADABLE)
		return refusal_set(err, errno, "cannot read the maps in " ROOT);
	snprintf(directory, PIN_DIRECTORY_SIZE, ROOT "/" NETNS_DIRECTORY "%" PRIu64, netns_cookie);
	if (root == BELONGS_TO_OTHER)
		return 0;
	if (root == BELONGS_TO_NOBODY && whose_directory(directory, netns_cookie) == BELONGS_TO_US)
		return 0;
	snprintf(directory, PIN_DIRECTORY_SIZE, ROOT);
	return 0;
}

static int open_maps(const char *directory, struct objects *objects, size_t *found,
		     const char **foreign)
{
	for (int map = 0; map < MAP_COUNT; map++) {
		int fd = open_pin(directory, map_name((enum map_number)map));

		if (fd < 0 && errno == ENOENT)
			continue;
		if (fd < 0)
			return -1;
		(*found)++;
		if (map_has_our_shape((enum map_number)map, fd)) {
			objects->maps[map] = fd;
			continue;
		}
		*foreign = map_name((enum map_number)map);
		close(fd);
	}
	return 0;
}

static int open_programs(const char *directory, struct objects *objects, size_t *found)
{
	for (int program = 0; program < PROGRAM_COUNT; program++) {
		int fd = open_pin(directory, program_name((enum program_number)program));

		if (fd < 0 && errno == ENOENT)
			continue;
		if (fd < 0)
			return -1;
		objects->program_ids[program] = program_id_of((enum program_number)program, fd);
		if (objects->program_ids[program]) {
			objects->programs[program] = fd;
			(*found)++;
		} else {
			/* Something else under our name: it will be written over. */
			close(fd);
		}
	}
	return 0;
}

int pins_open(const char *directory, struct objects *objects, size_t *found, const char **foreign,
	      struct cni_error *err)
{
	objects_clear(objects);
	*found = 0;
	*foreign = NULL;
	if (!open_maps(directory, objects, found, foreign) &&
	    !open_programs(directory, objects, found))
		return 0;
	refusal_set(err, errno, "cannot open what is pinned in %s", directory);
	objects_close(objects);
	return -1;
}

static void remove_directory(const char *directory)
{
	char path[PIN_PATH_SIZE];

	for (int object = 0; object < OBJECT_COUNT; object++) {
		object_path(path, directory, object_name(object));
		unlink(path);
	}
	rmdir(directory);
}

/* What killed loaders left, also those of versions that gave it another name. Nobody else
 * is loading: all hosts that share this file system share the lock. */
static void remove_leftovers(void)
{
	char path[PIN_DIRECTORY_SIZE];
	struct dirent *entry;
	DIR *directory = opendir(BPFFS);

	while (directory && (entry = readdir(directory))) {
		if (strncmp(entry->d_name, LOADING_NAME, strlen(LOADING_NAME)) != 0)
			continue;
		if (snprintf(path, sizeof(path), BPFFS "/%s", entry->d_name) < (int)sizeof(path))
			remove_directory(path);
	}
	if (directory)
		closedir(directory);
}

static int pin_into(const char *directory, const struct objects *objects, struct cni_error *err)
{
	char path[PIN_PATH_SIZE];

	if (mkdir(directory, 0700))
		return refusal_set(err, errno, "cannot make the directory %s", directory);
	for (int object = 0; object < OBJECT_COUNT; object++) {
		object_path(path, directory, object_name(object));
		if (bpf_obj_pin(object_fd(objects, object), path))
			return refusal_set(err, errno, "cannot pin %s", path);
	}
	return 0;
}

static int move_each(const char *from, const char *to, struct cni_error *err)
{
	char source[PIN_PATH_SIZE], target[PIN_PATH_SIZE];

	for (int object = 0; object < OBJECT_COUNT; object++) {
		object_path(source, from, object_name(object));
		object_path(target, to, object_name(object));
		if (rename(source, target))
			return refusal_set(err, errno, "cannot move %s to %s", source, target);
	}
	rmdir(from);
	return 0;
}

static int move_to_place(const char *from, const char *to, struct cni_error *err)
{
	if (!rename(from, to))
		return 0;
	/* Others' directories are below it, or what is left of a damaged set. */
	if (errno == ENOTEMPTY || errno == EEXIST)
		return move_each(from, to, err);
	return refusal_set(err, errno, "cannot move %s to %s", from, to);
}

int pins_write(const char *directory, const struct objects *objects, struct cni_error *err)
{
	remove_leftovers();
	if (!pin_into(LOADING, objects, err) && !move_to_place(LOADING, directory, err))
		return 0;
	remove_directory(LOADING);
	return -1;
}
