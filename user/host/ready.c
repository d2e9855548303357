/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ready.c - from any state of the pins to a datapath that is ready. */
#include "host/ready.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "datapath/attach/attach.h"
#include "datapath/load/bpffs.h"
#include "datapath/load/loader.h"
#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "net/port_ranges.h"
#include "datapath/load/pins.h"
#include "datapath/attach/socket_hooks.h"
#include "lib/warning.h"

/* By the programs that run, else by those that are pinned. Every program is bound to
 * every map, so one of ours gives a set that is whole. */
static bool find_maps(const struct objects *pinned, const struct address_list *addresses,
		      uint64_t netns_cookie, int maps[MAP_COUNT])
{
	for (size_t i = 0; i < addresses->count; i++)
		if (hooks_find_maps(addresses->interfaces[i].ifindex, netns_cookie, maps))
			return true;
	for (int program = 0; program < PROGRAM_COUNT; program++)
		if (pinned->programs[program] >= 0 &&
		    objects_open_whole(pinned->programs[program], netns_cookie, maps))
			return true;
	return false;
}

static bool all_maps_are_open(const struct objects *objects)
{
	for (int map = 0; map < MAP_COUNT; map++)
		if (objects->maps[map] < 0)
			return false;
	return true;
}

/* Maps without any program count only if none is missing; what else is pinned serves
 * nothing any more and is written over. */
static void collect_maps(struct objects *objects, const struct address_list *addresses,
			 uint64_t netns_cookie)
{
	struct objects whole;

	objects_clear(&whole);
	if (!find_maps(objects, addresses, netns_cookie, whole.maps) &&
	    all_maps_are_open(objects)) {
		memcpy(whole.maps, objects->maps, sizeof(whole.maps));
		for (int map = 0; map < MAP_COUNT; map++)
			objects->maps[map] = -1;
	}
	objects_close(objects);
	*objects = whole;
}

/* The counters go on where there are any. */
static int write_meta(const struct datapath *datapath, bool complete, bool sees_devices,
		      struct cni_error *err)
{
	struct meta meta;

	if (!meta_read(&datapath->objects, &meta))
		memset(&meta, 0, sizeof(meta));
	meta.layout = LAYOUT;
	meta.complete = complete;
	meta.sees_devices = sees_devices;
	meta.netns_cookie = datapath->netns_cookie;
	meta.lo_inode = lock_sysfs_inode();
	memset(meta.program_version, 0, sizeof(meta.program_version));
	snprintf(meta.program_version, sizeof(meta.program_version), "%s", PROGRAM_VERSION);
	if (!meta.port_seed && getrandom(&meta.port_seed, sizeof(meta.port_seed), 0) < 0)
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED, "cannot read random bytes: %s",
				     strerror(errno));
	port_ranges_follow(&meta);
	objects_read_ids(&datapath->objects, meta.object_ids);
	return meta_write(&datapath->objects, &meta, err);
}

/* Pins what is loaded, and replaces the programs that still run. */
static int complete(struct datapath *datapath, bool sees_devices, struct cni_error *err)
{
	cleanup_error struct cni_error ignored = {0};

	if (write_meta(datapath, false, sees_devices, err))
		return -1;
	/* The pin of the meta before is replaced last. */
	if (pins_write(datapath->directory, &datapath->objects, err))
		return -1;
	datapath->layout = LAYOUT;
	/* An older one that cannot be replaced works on the same maps, so the rest goes on; the
	 * caller finds it by replace_rest(). */
	attach_refresh(datapath, &ignored);
	socket_hooks_refresh(datapath);
	if (write_meta(datapath, true, sees_devices, err))
		return -1;
	datapath->state = DATAPATH_READY;
	return 0;
}

/* Whatever the state is. */
static int load(struct datapath *datapath, const struct address_list *addresses, uint32_t assured,
		struct cni_error *err)
{
	struct objects *objects = &datapath->objects;
	bool sees_devices;

	if (datapath->state == DATAPATH_FOREIGN)
		return datapath_refuse_foreign(datapath, err);
	collect_maps(objects, addresses, datapath->netns_cookie);
	if (loader_load(objects, assured, &sees_devices, err))
		return -1;
	return complete(datapath, sees_devices, err);
}

/* Tries once more what complete() could not do: nearly always there is nothing. */
static int replace_rest(const struct datapath *datapath, struct cni_error *err)
{
	if (!attach_refresh(datapath, err))
		return 0;
	return cni_error_wrap(err, "an older program stays at its hook, on the same maps; run"
				   " `bpf-portmap upgrade` again when nothing holds it there");
}

static int open_as(struct datapath *datapath, enum datapath_use use, struct cni_error *err)
{
	datapath_close(datapath);
	return datapath_open(datapath, use, PINS_ALL, err);
}

/* Loaders wait for each other; those of other hosts may be about to take the same directory. */
static int wait_for_loaders(int *pins_lock, struct cni_error *err)
{
	return bpffs_mount(err) || bpffs_verify(err) || pins_lock_take(pins_lock, err) ? -1 : 0;
}

/* Whether there are maps to go on with. */
static bool has_maps(const struct datapath *datapath, const struct address_list *addresses)
{
	const struct objects *pinned = &datapath->objects;
	struct objects found;
	bool whole;

	objects_clear(&found);
	whole = find_maps(pinned, addresses, datapath->netns_cookie, found.maps);
	objects_close(&found);
	return whole || all_maps_are_open(pinned);
}

enum where_nothing_is {
	LOAD_ANEW,
	LOAD_NOTHING,
};

static int load_alone(struct datapath *datapath, const struct address_list *addresses,
		      uint32_t assured, enum where_nothing_is otherwise, struct cni_error *err)
{
	cleanup_error struct cni_error stays = {0};

	if (open_as(datapath, DATAPATH_ALONE, err))
		return -1;
	if (datapath->state == DATAPATH_READY ||
	    (otherwise == LOAD_NOTHING && datapath->state != DATAPATH_FOREIGN &&
	     !has_maps(datapath, addresses)))
		return 0;
	if (load(datapath, addresses, assured, err))
		return -1;
	/* What this container needs is attached by the rest of its ADD, which fails where it
	 * cannot be. A program at another container's veth is no reason to refuse this one. */
	if (replace_rest(datapath, &stays))
		warning("%s", cni_error_message(&stays));
	return 0;
}

static int make_ready(struct datapath *datapath, const struct address_list *addresses,
		      uint32_t assured, enum where_nothing_is otherwise, struct cni_error *err)
{
	cleanup_pins_lock int pins_lock = -1;

	if (datapath->state == DATAPATH_READY)
		return 0;
	/* Nobody waits for a loader with the lock that the loader waits for. */
	datapath_close(datapath);
	if (wait_for_loaders(&pins_lock, err) || open_as(datapath, DATAPATH_WORK, err))
		return -1;
	if (datapath->state == DATAPATH_READY)
		return 0;
	if (load_alone(datapath, addresses, assured, otherwise, err) ||
	    open_as(datapath, DATAPATH_WORK, err))
		return -1;
	if (otherwise == LOAD_NOTHING || datapath->state == DATAPATH_READY)
		return 0;
	return cni_error_set(err, CNI_ERROR_TRY_AGAIN,
			     "what was loaded into %s is gone again, by `bpf-portmap uninstall`,"
			     " say; try again",
			     datapath->directory);
}

int datapath_make_ready(struct datapath *datapath, const struct address_list *addresses,
			uint32_t assured, struct cni_error *err)
{
	return make_ready(datapath, addresses, assured, LOAD_ANEW, err);
}

int datapath_upgrade(struct datapath *datapath, const struct address_list *addresses,
		     struct cni_error *err)
{
	cleanup_pins_lock int pins_lock = -1;

	datapath_close(datapath);
	if (wait_for_loaders(&pins_lock, err) || open_as(datapath, DATAPATH_ALONE, err))
		return -1;
	if (datapath->state == DATAPATH_ABSENT)
		return 0;
	if ((datapath->state != DATAPATH_READY || strcmp(datapath->maker, PROGRAM_VERSION) != 0) &&
	    load(datapath, addresses, 0, err))
		return -1;
	return replace_rest(datapath, err);
}

/* Something else may lie where one of our maps was pinned, but the programs know it. It is used,
 * and nothing pinned: that is for somebody who knows what the other thing is. */
static void find_in_place_of_foreign(struct datapath *datapath,
				     const struct address_list *addresses)
{
	struct objects found;

	objects_clear(&found);
	if (!find_maps(&datapath->objects, addresses, datapath->netns_cookie, found.maps)) {
		objects_close(&found);
		return;
	}
	objects_close(&datapath->objects);
	datapath->objects = found;
	datapath->state = DATAPATH_OUTDATED;
}

int datapath_recover(struct datapath *datapath, const struct address_list *addresses,
		     struct cni_error *err)
{
	if (datapath_is_usable(datapath))
		return 0;
	if (datapath->state == DATAPATH_FOREIGN) {
		find_in_place_of_foreign(datapath, addresses);
		return 0;
	}
	return has_maps(datapath, addresses) ? make_ready(datapath, addresses, 0, LOAD_NOTHING, err)
					     : 0;
}

void datapath_find(struct datapath *datapath, const struct address_list *addresses)
{
	if (datapath_is_usable(datapath) || datapath->state == DATAPATH_FOREIGN)
		return;
	collect_maps(&datapath->objects, addresses, datapath->netns_cookie);
	if (all_maps_are_open(&datapath->objects))
		datapath->state = DATAPATH_OUTDATED;
}
