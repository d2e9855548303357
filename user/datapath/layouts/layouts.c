/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* layouts.c - sets of maps that an older release has made. */
#include "datapath/layouts/layouts.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "datapath/layouts/0.1/layout.h"
#include "datapath/load/bpf_error.h"
#include "datapath/load/datapath.h"
#include "lib/cleanup.h"
#include "lib/memory.h"

#define PATH_SIZE (PIN_DIRECTORY_SIZE + 32)

static const struct older_layout *const layouts[] = {
	&layout_0_1,
};

void older_clear(struct older_set *set)
{
	set->layout = NULL;
	for (size_t map = 0; map < OLDER_MAPS; map++)
		set->maps[map] = -1;
}

void older_close(struct older_set *set)
{
	for (size_t map = 0; map < OLDER_MAPS; map++)
		cleanup_close_pointer(&set->maps[map]);
	older_clear(set);
}

static const struct older_layout *find(uint32_t number)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (layouts[i]->layout == number)
			return layouts[i];
	return NULL;
}

static void pin_path(const char *directory, const struct older_map *map, char path[PATH_SIZE])
{
	snprintf(path, PATH_SIZE, "%s/%s", directory, map->name);
}

/* False: it has another shape. */
static bool has_shape(const struct older_map *map, int fd)
{
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info);

	return !bpf_obj_get_info_by_fd(fd, &info, &size) && info.key_size == map->key_size &&
	       info.value_size == map->value_size;
}

int older_open(struct older_set *set, const char *directory, uint32_t number, struct cni_error *err)
{
	char path[PATH_SIZE];

	set->layout = find(number & ~LAYOUT_TAKEN_OVER);
	if (!set->layout)
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "the maps in %s have layout %u, which no release of"
				     " bpf-portmap before %s has: stop all containers that have"
				     " mapped ports and remove the directory",
				     directory, number & ~LAYOUT_TAKEN_OVER, PROGRAM_VERSION);
	for (size_t map = 0; map < set->layout->map_count; map++) {
		pin_path(directory, &set->layout->maps[map], path);
		set->maps[map] = bpf_obj_get(path);
		if (set->maps[map] < 0)
			return bpf_error_set(err, errno, "cannot open %s of bpf-portmap %s", path,
					     set->layout->version);
		if (!has_shape(&set->layout->maps[map], set->maps[map]))
			return cni_error_set(
				err, CNI_ERROR_KERNEL_REFUSED,
				"%s is not laid out as bpf-portmap %s made it: stop all"
				" containers that have mapped ports and remove %s",
				path, set->layout->version, directory);
	}
	return 0;
}

static bool is_shared(const struct older_layout *layout, enum map_number map)
{
	for (const enum map_number *shared = layout->shared; *shared != MAP_COUNT; shared++)
		if (*shared == map)
			return true;
	return false;
}

void older_keep_shared(const struct older_set *set, struct objects *objects)
{
	for (int map = 0; map < MAP_COUNT; map++) {
		if (is_shared(set->layout, (enum map_number)map))
			continue;
		cleanup_close_pointer(&objects->maps[map]);
		objects->maps[map] = -1;
	}
	for (int program = 0; program < PROGRAM_COUNT; program++) {
		cleanup_close_pointer(&objects->programs[program]);
		objects->programs[program] = -1;
		objects->program_ids[program] = 0;
	}
}

/* Other versions of bpf-portmap read the layout first, and refuse this one. The other words are
 * written as they are, and no program changes them. */
static int mark_taken_over(const struct older_set *set, struct cni_error *err)
{
	cleanup_free uint32_t *meta = need(malloc(set->layout->maps[0].value_size));
	uint32_t only = 0;

	if (bpf_map_lookup_elem(set->maps[0], &only, meta))
		return bpf_error_set(err, errno, "cannot read the map meta of bpf-portmap %s",
				     set->layout->version);
	if (meta[0] & LAYOUT_TAKEN_OVER)
		return 0;
	meta[0] |= LAYOUT_TAKEN_OVER;
	if (bpf_map_update_elem(set->maps[0], &only, meta, BPF_ANY))
		return bpf_error_set(err, errno, "cannot write to the map meta of bpf-portmap %s",
				     set->layout->version);
	return 0;
}

#define FREEZE_ROUNDS 100

/* EBUSY: another process writes to it at this moment, or it is frozen already. */
static int freeze(int fd)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info), only = 0;
	cleanup_free char *value = NULL;

	if (bpf_obj_get_info_by_fd(fd, &info, &size))
		return -1;
	value = need(calloc(1, info.key_size + info.value_size));
	for (int round = 0; round < FREEZE_ROUNDS; round++) {
		if (!bpf_map_freeze(fd))
			return 0;
		/* A frozen map refuses before it looks for the key, which is not there. */
		if (bpf_map_delete_elem(fd,
					info.type == BPF_MAP_TYPE_ARRAY ? (void *)&only : value) &&
		    errno == EPERM)
			return 0;
		nanosleep(&pause, NULL);
	}
	errno = EBUSY;
	return -1;
}

int older_freeze(const struct older_set *set, struct cni_error *err)
{
	if (mark_taken_over(set, err))
		return -1;
	for (size_t map = 0; map < set->layout->map_count; map++) {
		if (!set->layout->maps[map].is_frozen || !freeze(set->maps[map]))
			continue;
		if (errno == EBUSY)
			return cni_error_set(err, CNI_ERROR_TRY_AGAIN,
					     "a bpf-portmap %s writes to its maps: try again",
					     set->layout->version);
		return bpf_error_set(err, errno, "cannot freeze the map %s of bpf-portmap %s",
				     set->layout->maps[map].name, set->layout->version);
	}
	return 0;
}

void older_unpin(const char *directory)
{
	char path[PATH_SIZE];

	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		for (size_t map = 0; map < layouts[i]->map_count; map++) {
			if (!layouts[i]->maps[map].is_obsolete)
				continue;
			pin_path(directory, &layouts[i]->maps[map], path);
			unlink(path);
		}
}
