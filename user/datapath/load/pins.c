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
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "datapath/load/bpffs.h"
#include "datapath/load/bpf_error.h"
#include "lib/warning.h"

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

/* enum bpf_attr of Linux 6.5; older headers lack path_fd. */
#define PATH_FD (1U << 14) /* BPF_F_PATH_FD */

struct get_at {
	uint64_t path;
	uint32_t bpf_fd;
	uint32_t flags;
	int32_t path_fd;
	uint32_t reserved;
};

/* A name in an open directory: half of what a whole path costs. */
static int open_at(int directory, const char *name)
{
	struct get_at attributes = {
		.path = (uint64_t)(uintptr_t)name,
		.flags = PATH_FD,
		.path_fd = directory,
	};

	return (int)syscall(SYS_bpf, BPF_OBJ_GET, &attributes, sizeof(attributes));
}

static int open_path(const char *directory, const char *name)
{
	char path[PIN_PATH_SIZE];

	object_path(path, directory, name);
	return bpf_obj_get(path);
}

struct open_directory {
	const char *path;
	int fd;
	bool present[OBJECT_COUNT]; /* by the order of object_name() */
	size_t count;
};

static int open_pin(const struct open_directory *directory, const char *name)
{
	int fd = open_at(directory->fd, name);

	if (fd >= 0 || errno != EINVAL)
		return fd;
	return open_path(directory->path, name);
}

int pins_open_map(const char *directory, enum map_number map)
{
	int fd = open_path(directory, map_name(map));

	if (fd < 0 || map_has_our_shape(map, fd))
		return fd;
	close(fd);
	errno = EINVAL;
	return -1;
}

/* A directory without meta may still have a program, which knows its meta. */
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

void pins_clear(struct pins *pins)
{
	*pins = (struct pins){.meta = -1};
}

void pins_close(struct pins *pins)
{
	cleanup_close_pointer(&pins->meta);
	pins->meta = -1;
}

static enum belongs whose_directory(const char *directory, uint64_t netns_cookie, struct pins *pins)
{
	pins_close(pins);
	pins->has_head = false;
	pins->meta = open_meta(directory);
	if (pins->meta < 0)
		return errno == ENOENT ? BELONGS_TO_NOBODY : BELONGS_UNREADABLE;
	if (meta_head_read(pins->meta, &pins->head))
		return errno == EINVAL ? BELONGS_TO_NOBODY : BELONGS_UNREADABLE;
	pins->has_head = true;
	return pins->head.netns_cookie == netns_cookie ? BELONGS_TO_US : BELONGS_TO_OTHER;
}

/* Whether there may be something of ours: what is another user's is not even looked at. */
static int look_at_root(enum bpffs_owner *owner, struct cni_error *err)
{
	int whose;

	if (bpffs_verify(err))
		return -1;
	whose = bpffs_owner(PINS_ROOT, err);
	if (whose < 0)
		return -1;
	*owner = (enum bpffs_owner)whose;
	if (*owner == BPFFS_ANOTHERS)
		warning(PINS_ROOT " does not belong to root, and is not used; the next ADD moves it"
				  " away; `chmod 0700 " BPFFS "` keeps other users out");
	return 0;
}

int pins_find(uint64_t netns_cookie, struct pins *pins, struct cni_error *err)
{
	enum bpffs_owner owner;
	enum belongs root;

	snprintf(pins->directory, PIN_DIRECTORY_SIZE, PINS_ROOT);
	if (look_at_root(&owner, err))
		return -1;
	pins->usable = owner == BPFFS_ROOTS;
	if (!pins->usable)
		return 0;
	root = whose_directory(PINS_ROOT, netns_cookie, pins);
	if (root == BELONGS_UNREADABLE)
		return bpf_error_set(err, errno, "cannot read the maps in " PINS_ROOT);
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

static int object_by_name(const char *name)
{
	int object;

	for (object = 0; object < OBJECT_COUNT; object++)
		if (strcmp(name, object_name(object)) == 0)
			break;
	return object;
}

static void mark_present(struct open_directory *directory, const char *entries, size_t size)
{
	const struct dirent64 *entry;

	for (size_t at = 0; at < size; at += entry->d_reclen) {
		int object;

		entry = (const struct dirent64 *)(entries + at);
		object = object_by_name(entry->d_name);
		if (object == OBJECT_COUNT || entry->d_type != DT_REG)
			continue;
		directory->present[object] = true;
		directory->count++;
	}
}

/* Whether all is there costs two system calls; to open all, two for each. */
static int list_directory(struct open_directory *directory)
{
	char entries[4096] __attribute__((aligned(8)));
	ssize_t size;

	while (directory->count < OBJECT_COUNT &&
	       (size = getdents64(directory->fd, entries, sizeof(entries))) != 0) {
		if (size < 0)
			return -1;
		mark_present(directory, entries, (size_t)size);
	}
	return 0;
}

static int map_object(enum map_number map)
{
	return PROGRAM_COUNT + (int)map;
}

/* It was listed; who has removed it since has removed it. */
static void is_gone(struct open_directory *directory, int object)
{
	directory->present[object] = false;
	directory->count--;
}

static int open_map(struct open_directory *directory, enum map_number map, int fd,
		    struct objects *objects, const char **foreign)
{
	if (fd < 0)
		fd = open_pin(directory, map_name(map));
	if (fd < 0 && errno != ENOENT)
		return -1;
	if (fd < 0) {
		is_gone(directory, map_object(map));
	} else if (map_has_our_shape(map, fd)) {
		objects->maps[map] = fd;
	} else {
		*foreign = map_name(map);
		close(fd);
	}
	return 0;
}

static int open_program(struct open_directory *directory, enum program_number program,
			struct objects *objects)
{
	int fd = open_pin(directory, program_name(program));

	if (fd < 0 && errno != ENOENT)
		return -1;
	objects->program_ids[program] = fd < 0 ? 0 : program_id_of(program, fd);
	if (objects->program_ids[program]) {
		objects->programs[program] = fd;
		return 0;
	}
	/* Something else under our name: it will be written over. */
	if (fd >= 0)
		close(fd);
	is_gone(directory, (int)program);
	return 0;
}

/* What user space neither reads nor writes, and what only a few need: udp_clients.h. */
static bool is_used(enum map_number map, enum pins_use use)
{
	switch (map) {
	case MAP_PORTMAPS:
	case MAP_SLOTS:
	case MAP_ENDPOINTS:
	case MAP_INTERFACES:
	case MAP_POLICIES:
	case MAP_ATTACHMENTS:
	case MAP_META:
		return true;
	case MAP_VETHS:
	case MAP_PUBLISHED_PORTS:
	case MAP_ENDPOINT_ADDRESSES:
	case MAP_HOST_ADDRESSES:
	case MAP_NETWORKS:
		return use != PINS_TO_REMOVE;
	default:
		return use == PINS_ALL;
	}
}

/* meta is open already. */
static int known_fd(const struct pins *pins, int map)
{
	return map == MAP_META && pins->meta >= 0 ? fcntl(pins->meta, F_DUPFD_CLOEXEC, 3) : -1;
}

static int open_used(const struct pins *pins, enum pins_use use, struct open_directory *directory,
		     struct objects *objects, const char **foreign)
{
	for (int map = 0; map < MAP_COUNT; map++)
		if (is_used((enum map_number)map, use) &&
		    directory->present[map_object((enum map_number)map)] &&
		    open_map(directory, (enum map_number)map, known_fd(pins, map), objects,
			     foreign))
			return -1;
	for (int program = 0; program < PROGRAM_COUNT; program++)
		if (use != PINS_TO_REMOVE && directory->present[program] &&
		    open_program(directory, (enum program_number)program, objects))
			return -1;
	return 0;
}

int pins_open(const struct pins *pins, enum pins_use use, struct objects *objects, size_t *found,
	      const char **foreign, struct cni_error *err)
{
	struct open_directory directory = {.path = pins->directory};
	int result = -1;

	objects_clear(objects);
	*found = 0;
	*foreign = NULL;
	if (!pins->usable)
		return 0;
	directory.fd = open(pins->directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (directory.fd < 0 && errno == ENOENT)
		return 0;
	if (directory.fd >= 0 && !list_directory(&directory))
		result = open_used(pins, use, &directory, objects, foreign);
	if (result) {
		bpf_error_set(err, errno, "cannot open what is pinned in %s", pins->directory);
		objects_close(objects);
	}
	*found = directory.count;
	cleanup_close_pointer(&directory.fd);
	return result;
}

static void empty_directory(const char *directory)
{
	char path[PIN_PATH_SIZE];

	for (int object = 0; object < OBJECT_COUNT; object++) {
		object_path(path, directory, object_name(object));
		unlink(path);
	}
}

/* What killed loaders left, also those of versions that gave it another name. Nobody else
 * is loading: all hosts that share this file system share the lock. What is another user's may be a
 * link to anywhere. */
static void remove_leftover(const char *directory)
{
	struct cni_error ignored = {0};

	if (bpffs_owner(directory, &ignored) == BPFFS_ROOTS) {
		empty_directory(directory);
		if (strcmp(directory, PINS_LOADING) != 0)
			rmdir(directory);
	}
	cni_error_release(&ignored);
}

static void remove_leftovers(void)
{
	char path[PIN_DIRECTORY_SIZE];
	struct dirent *entry;
	DIR *directory = opendir(BPFFS);

	while (directory && (entry = readdir(directory)))
		if (snprintf(path, sizeof(path), BPFFS "/%s", entry->d_name) < (int)sizeof(path) &&
		    !strncmp(path, PINS_LOADING, strlen(PINS_LOADING)))
			remove_leftover(path);
	if (directory)
		closedir(directory);
}

static int pin_into(const char *directory, const struct objects *objects, struct cni_error *err)
{
	char path[PIN_PATH_SIZE];

	for (int object = 0; object < OBJECT_COUNT; object++) {
		object_path(path, directory, object_name(object));
		if (bpf_obj_pin(object_fd(objects, object), path))
			return bpf_error_set(err, errno, "cannot pin %s", path);
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
			return bpf_error_set(err, errno, "cannot move %s to %s", source, target);
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
	return bpf_error_set(err, errno, "cannot move %s to %s", from, to);
}

int pins_write(const char *directory, const struct objects *objects, struct cni_error *err)
{
	remove_leftovers();
	if (!pin_into(PINS_LOADING, objects, err) && !move_to_place(PINS_LOADING, directory, err))
		return 0;
	empty_directory(PINS_LOADING);
	return -1;
}
