/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* datapath.c - the maps and programs of the host we run on. */
#include "datapath/load/datapath.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "datapath/load/bpffs.h"
#include "datapath/load/lock.h"
#include "datapath/load/bpf_error.h"
#include "lib/version.h"
#include "net/netns.h"

#define OLDEST_KERNEL "5.15"
#define TRIES 8

static enum datapath_state judge(struct datapath *datapath, const struct pins *pins,
				 const struct pins_found *found)
{
	if (!found->count && !found->foreign)
		return DATAPATH_ABSENT;
	if (pins->has_head) {
		datapath->layout = pins->head.layout;
		memcpy(datapath->maker, pins->head.program_version, sizeof(datapath->maker));
		/* Its meta may have another shape, too. */
		if (datapath->layout && datapath->layout != LAYOUT)
			return DATAPATH_FOREIGN;
	}
	if (datapath->objects.maps[MAP_META] < 0 || !pins->has_head)
		return found->foreign ? DATAPATH_FOREIGN : DATAPATH_DAMAGED;
	if (datapath->layout != LAYOUT || found->foreign)
		return DATAPATH_FOREIGN;
	if (found->missing || pins->head.complete != META_COMPLETE)
		return DATAPATH_DAMAGED;
	return version_is_older(pins->head.program_version, PROGRAM_VERSION) ? DATAPATH_OUTDATED
									     : DATAPATH_READY;
}

static int open_set(struct datapath *datapath, const struct pins *pins, enum pin_set set,
		    struct cni_error *err)
{
	struct pins_found found;

	objects_close(&datapath->objects);
	if (pins_open(pins, set, &datapath->objects, &found, err))
		return -1;
	datapath->objects.directory = datapath->directory;
	datapath->foreign = found.foreign;
	datapath->state = judge(datapath, pins, &found);
	return 0;
}

/* Once; 1: uninstall has removed the set meanwhile, and an ADD has loaded another one, of which
 * some objects are. Meta is opened first, and once more as the last of them. */
static int open_once(struct datapath *datapath, enum pin_set set, struct cni_error *err)
{
	const struct objects *objects = &datapath->objects;
	struct pins pins;
	int result;

	pins_clear(&pins);
	result = pins_find(datapath->netns_cookie, &pins, err);
	memcpy(datapath->directory, pins.directory, sizeof(datapath->directory));
	if (pins.usable)
		lock_remember_in(datapath->directory, datapath->netns_cookie);
	if (!result)
		result = open_set(datapath, &pins, set, err);
	/* Repair needs all that is there. */
	if (!result && set != PINS_ALL && !datapath_is_usable(datapath))
		result = open_set(datapath, &pins, PINS_ALL, err);
	if (!result && datapath_is_usable(datapath))
		result = !map_is_same(pins.meta, objects->maps[MAP_META]);
	pins_close(&pins);
	return result;
}

static int open_pins(struct datapath *datapath, enum pin_set set, struct cni_error *err)
{
	int result = 1;

	for (int i = 0; i < TRIES && result == 1; i++)
		result = open_once(datapath, set, err);
	if (result != 1)
		return result;
	return cni_error_set(err, CNI_ERROR_TRY_AGAIN,
			     "the maps in %s are replaced again and again", datapath->directory);
}

int datapath_open(struct datapath *datapath, enum pin_set set, struct cni_error *err)
{
	/* libbpf would print errors that are expected here. */
	libbpf_set_print(NULL);
	memset(datapath, 0, sizeof(*datapath));
	objects_clear(&datapath->objects);
	if (netns_get_cookie(&datapath->netns_cookie, err))
		return -1;
	return bpffs_is_mounted() ? open_pins(datapath, set, err) : 0;
}

void datapath_close(struct datapath *datapath)
{
	objects_close(&datapath->objects);
}

bool datapath_is_usable(const struct datapath *datapath)
{
	return datapath->state == DATAPATH_READY || datapath->state == DATAPATH_OUTDATED;
}

int datapath_refuse_foreign(const struct datapath *datapath, struct cni_error *err)
{
	const char *blank = datapath->maker[0] ? " " : "";
	char what[64];

	if (datapath->layout && datapath->layout != LAYOUT)
		snprintf(what, sizeof(what), "layout %u", datapath->layout);
	else
		snprintf(what, sizeof(what), "another shape (%s)",
			 datapath->foreign ? datapath->foreign : "meta");
	return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
			     "the maps in %s have %s, and this bpf-portmap %s has layout %u: use"
			     " the bpf-portmap%s%s that made them, or stop all containers that"
			     " have mapped ports and remove the directory; `bpf-portmap uninstall"
			     " --purge` takes all of it off the host",
			     datapath->directory, what, PROGRAM_VERSION, LAYOUT, blank,
			     datapath->maker);
}

/* The look-up needs the capability that the rest needs too, and changes nothing. */
int probe_permission(struct cni_error *err)
{
	__u32 id;

	if (!bpf_prog_get_next_id(0, &id) || errno == ENOENT)
		return 0;
	return bpf_error_set(err, errno, "the kernel refuses bpf()");
}

int probe_kernel(struct cni_error *err)
{
	struct utsname system;

	if (!uname(&system) && version_is_older(system.release, OLDEST_KERNEL))
		return cni_error_set(err, CNI_ERROR_NOT_AVAILABLE,
				     "this kernel is Linux %s, bpf-portmap needs " OLDEST_KERNEL
				     " or newer",
				     system.release);
	if (probe_permission(err)) {
		err->code = CNI_ERROR_NOT_AVAILABLE;
		return -1;
	}
	if (access(BPFFS, F_OK))
		return cni_error_set(err, CNI_ERROR_NOT_AVAILABLE,
				     "there is no " BPFFS " to pin maps in (%s); is sysfs mounted?",
				     strerror(errno));
	return 0;
}
