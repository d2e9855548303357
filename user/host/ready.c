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
#include "datapath/attach/attach_verify.h"

/* By the programs that run, else by those that are pinned. Every program is bound to
 * every map, so one of ours gives a set that is whole. */
static bool find_maps(const struct objects *pinned, const struct address_list *addresses,
		      uint64_t netns_cookie, int maps[MAP_COUNT])
{
	for (size_t i = 0; i < addresses->count; i++)
		if (attach_find_maps(addresses->interfaces[i].ifindex, netns_cookie, maps))
			return true;
	for (int program = 0; program < PROGRAM_COUNT; program++)
		if (pinned->programs[program] >= 0 &&
		    attach_maps_of_program(pinned->programs[program], netns_cookie, maps))
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
	memset(meta.program_version, 0, sizeof(meta.program_version));
	snprintf(meta.program_version, sizeof(meta.program_version), "%s", PROGRAM_VERSION);
	if (!meta.port_seed && getrandom(&meta.port_seed, sizeof(meta.port_seed), 0) < 0)
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED, "cannot read random bytes: %s",
				     strerror(errno));
	port_ranges_follow(&meta);
	return meta_write(&datapath->objects, &meta, err);
}

static int load(struct datapath *datapath, const struct address_list *addresses, uint32_t assured,
		struct cni_error *err)
{
	struct objects *objects = &datapath->objects;
	bool sees_devices;

	collect_maps(objects, addresses, datapath->netns_cookie);
	if (loader_load(objects, assured, &sees_devices, err) ||
	    write_meta(datapath, false, sees_devices, err) ||
	    pins_write(datapath->directory, objects, err))
		return -1;
	attach_refresh(datapath);
	socket_hooks_refresh(datapath);
	if (write_meta(datapath, true, sees_devices, err))
		return -1;
	lock_remember_in(datapath->directory, datapath->netns_cookie);
	lock_note_sysfs();
	datapath->state = DATAPATH_READY;
	return 0;
}

int datapath_make_ready(struct datapath *datapath, const struct address_list *addresses,
			uint32_t assured, struct cni_error *err)
{
	cleanup_lock int lock = -1;
	cleanup_pins_lock struct pins_lock pins_lock = PINS_LOCK_NONE;

	if (datapath->state == DATAPATH_READY)
		return 0;
	lock = lock_take(err);
	if (lock < 0 || bpffs_mount(err) || bpffs_verify(err))
		return -1;
	/* Another host's first load may be about to take the same directory. */
	if (pins_lock_take(&pins_lock, err))
		return -1;
	datapath_close(datapath);
	if (datapath_open(datapath, PINS_ALL, err))
		return -1;
	if (datapath->state == DATAPATH_READY)
		return 0;
	if (datapath->state == DATAPATH_FOREIGN)
		return datapath_refuse_foreign(datapath, err);
	return load(datapath, addresses, assured, err);
}

int datapath_recover(struct datapath *datapath, const struct address_list *addresses,
		     struct cni_error *err)
{
	struct objects found;
	bool whole;

	if (datapath_is_usable(datapath))
		return 0;
	objects_clear(&found);
	whole = find_maps(&datapath->objects, addresses, datapath->netns_cookie, found.maps);
	if (datapath->state == DATAPATH_FOREIGN && whole) {
		/* Something else lies where one of our maps was pinned, but the programs know it.
		 * It is used, and nothing pinned: that is for somebody who knows what the other
		 * thing is. */
		objects_close(&datapath->objects);
		datapath->objects = found;
		datapath->state = DATAPATH_OUTDATED;
		return 0;
	}
	objects_close(&found);
	if (datapath->state == DATAPATH_FOREIGN ||
	    (!whole && !all_maps_are_open(&datapath->objects)))
		return 0;
	return datapath_make_ready(datapath, addresses, 0, err);
}
