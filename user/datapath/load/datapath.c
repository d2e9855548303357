/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* datapath.c - the maps and programs of the host we run on. */
#include "datapath/load/datapath.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "datapath/load/bpffs.h"
#include "datapath/load/own_sysfs.h"
#include "datapath/load/bpf_error.h"
#include "net/netns.h"

/* Whether version a is older than b: up to three numbers. What is no version is old. */
static bool is_older(const char *a, const char *b)
{
	for (int part = 0; part < 3; part++) {
		char *a_end, *b_end;
		unsigned long a_number = strtoul(a, &a_end, 10);
		unsigned long b_number = strtoul(b, &b_end, 10);

		if (a_number != b_number)
			return a_number < b_number;
		a = *a_end == '.' ? a_end + 1 : a_end;
		b = *b_end == '.' ? b_end + 1 : b_end;
	}
	return false;
}

static enum datapath_state judge(struct datapath *datapath, const struct pins *pins, size_t found)
{
	if (!found)
		return DATAPATH_ABSENT;
	if (datapath->objects.maps[MAP_META] < 0 || !pins->has_head)
		return datapath->foreign ? DATAPATH_FOREIGN : DATAPATH_DAMAGED;
	datapath->layout = pins->head.layout;
	memcpy(datapath->maker, pins->head.program_version, sizeof(datapath->maker));
	if (pins->head.layout != LAYOUT || datapath->foreign)
		return DATAPATH_FOREIGN;
	if (found < OBJECT_COUNT || !pins->head.complete)
		return DATAPATH_DAMAGED;
	return is_older(pins->head.program_version, PROGRAM_VERSION) ? DATAPATH_OUTDATED
								     : DATAPATH_READY;
}

static int open_and_judge(struct datapath *datapath, const struct pins *pins, enum pins_use use,
			  struct cni_error *err)
{
	size_t found = 0;

	objects_close(&datapath->objects);
	if (pins_open(pins, use, &datapath->objects, &found, &datapath->foreign, err))
		return -1;
	datapath->state = judge(datapath, pins, found);
	return 0;
}

/* What is not whole is for those who mend it. */
static int open_pins(struct datapath *datapath, enum pins_use use, struct cni_error *err)
{
	struct pins pins;
	int result;

	pins_clear(&pins);
	result = pins_find(datapath->netns_cookie, &pins, err);
	memcpy(datapath->directory, pins.directory, sizeof(datapath->directory));
	if (pins.usable)
		own_sysfs_remember_in(datapath->directory, datapath->netns_cookie);
	if (!result)
		result = open_and_judge(datapath, &pins, use, err);
	if (!result && use != PINS_ALL && !datapath_is_usable(datapath))
		result = open_and_judge(datapath, &pins, PINS_ALL, err);
	pins_close(&pins);
	return result;
}

int datapath_open(struct datapath *datapath, enum pins_use use, struct cni_error *err)
{
	/* It would write to stderr what are ordinary answers here. */
	libbpf_set_print(NULL);
	memset(datapath, 0, sizeof(*datapath));
	objects_clear(&datapath->objects);
	if (netns_get_cookie(&datapath->netns_cookie, err))
		return -1;
	return bpffs_is_mounted() ? open_pins(datapath, use, err) : 0;
}

void datapath_close(struct datapath *datapath)
{
	objects_close(&datapath->objects);
}

bool datapath_is_usable(const struct datapath *datapath)
{
	return datapath->state == DATAPATH_READY || datapath->state == DATAPATH_OUTDATED;
}

int datapath_borrow_maps(const struct datapath *datapath, struct objects *all,
			 struct cni_error *err)
{
	*all = datapath->objects;
	for (int map = 0; map < MAP_COUNT; map++) {
		if (all->maps[map] < 0)
			all->maps[map] = pins_open_map(datapath->directory, (enum map_number)map);
		if (all->maps[map] >= 0)
			continue;
		bpf_error_set(err, errno, "cannot open the map %s in %s",
			      map_name((enum map_number)map), datapath->directory);
		datapath_return_maps(datapath, all);
		return -1;
	}
	return 0;
}

void datapath_return_maps(const struct datapath *datapath, struct objects *all)
{
	for (int map = 0; map < MAP_COUNT; map++)
		if (all->maps[map] >= 0 && datapath->objects.maps[map] < 0)
			close(all->maps[map]);
}

int datapath_refuse_foreign(const struct datapath *datapath, struct cni_error *err)
{
	char what_to_do[192];

	snprintf(what_to_do, sizeof(what_to_do),
		 "use the bpf-portmap%s%s that made %s, or stop all containers that have mapped"
		 " ports and remove the directory",
		 datapath->maker[0] ? " " : "", datapath->maker,
		 datapath->layout == LAYOUT ? "it" : "them");
	if (datapath->layout && datapath->layout != LAYOUT)
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "the maps in %s have layout %u, but this bpf-portmap %s knows"
				     " layout %u only: %s",
				     datapath->directory, datapath->layout, PROGRAM_VERSION, LAYOUT,
				     what_to_do);
	return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
			     "the map %s in %s is not laid out as bpf-portmap %s (layout %u) needs"
			     " it: %s",
			     datapath->foreign ? datapath->foreign : "meta", datapath->directory,
			     PROGRAM_VERSION, LAYOUT, what_to_do);
}
