/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* datapath.c - the maps and programs of the host we run on. */
#include "datapath/load/datapath.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "datapath/load/bpffs.h"
#include "datapath/load/device_layout.h"
#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "datapath/load/bpf_error.h"
#include "lib/text.h"
#include "net/netlink.h"
#include "lib/io.h"

#define OLDEST_KERNEL "5.15"

/* Returns whether another NAT has come to the kernel that the programs do not ask about. DEL has
 * nothing to do with it. */
static bool programs_are_blind(enum conntrack_use conntrack, enum datapath_use use)
{
	if (use == DATAPATH_WORK_BY_META)
		return false;
	return (conntrack == CONNTRACK_ABSENT && device_layout_has_conntrack()) ||
	       (conntrack == CONNTRACK_ASKED && device_layout_has_nat_without_hook());
}

static enum datapath_state judge_state(struct datapath *datapath, const struct pins *pins,
				       const struct pins_found *found, enum datapath_use use)
{
	if (!found->count && !found->foreign)
		return DATAPATH_ABSENT;
	if (pins->has_head) {
		datapath->layout = pins->head.layout;
		datapath->sees_devices = pins->head.sees_devices;
		memcpy(datapath->maker, pins->head.program_version, sizeof(datapath->maker));
	}
	if (found->foreign || (pins->has_head && datapath->layout != LAYOUT))
		return DATAPATH_FOREIGN;
	if (found->count < OBJECT_COUNT || !pins->has_head || !pins->head.complete ||
	    !found->is_of_last_load)
		return DATAPATH_DAMAGED;
	datapath->is_blind = programs_are_blind(pins->head.conntrack, use);
	return datapath->is_blind || version_is_older(pins->head.program_version, PROGRAM_VERSION)
		       ? DATAPATH_OUTDATED
		       : DATAPATH_READY;
}

/* 1: the set was replaced since its meta was found, and some objects of each are open. */
static int open_found(struct datapath *datapath, struct pins *pins, enum datapath_use use,
		      struct cni_error *err)
{
	struct pins_found found;

	objects_close(&datapath->objects);
	if (pins_open(pins, use, &datapath->objects, &found, err))
		return -1;
	datapath->links = found.links;
	datapath->foreign = found.foreign;
	datapath->state = judge_state(datapath, pins, &found, use);
	return !found.by_ids && datapath_is_usable(datapath) &&
	       !map_is_same(pins->meta, datapath->objects.maps[MAP_META]);
}

static int take_lock(struct datapath *datapath, enum datapath_use use, const struct pins *pins,
		     struct cni_error *err)
{
	if (use == DATAPATH_READ || datapath->lock >= 0)
		return 0;
	if (pins->has_head && pins->head.netns_cookie == datapath->netns_cookie)
		lock_expect_sysfs(pins->head.lo_inode);
	datapath->lock = use == DATAPATH_ALONE ? lock_take_exclusive(err) : lock_take_shared(err);
	return datapath->lock < 0 ? -1 : 0;
}

/* The pins tell where the lock is, so they are found before it is taken. With it they stay as they
 * are; who only reads may meet two replacements in a row. */
static int open_pins(struct datapath *datapath, enum datapath_use use, struct cni_error *err)
{
	int result = 1;

	for (int round = 0; result == 1 && round < 2; round++) {
		struct pins pins = {.meta = -1};

		result = pins_find(datapath->netns_cookie, &pins, err);
		memcpy(datapath->directory, pins.directory, sizeof(datapath->directory));
		if (!result)
			result = take_lock(datapath, use, &pins, err);
		if (!result)
			result = open_found(datapath, &pins, use, err);
		cleanup_close_pointer(&pins.meta);
	}
	if (result != 1)
		return result;
	return cni_error_set(err, CNI_ERROR_TRY_AGAIN,
			     "the maps in %s are being replaced; try again", datapath->directory);
}

int datapath_open(struct datapath *datapath, enum datapath_use use, struct cni_error *err)
{
	/* libbpf would print errors that are expected here. */
	libbpf_set_print(NULL);
	*datapath = (struct datapath){.lock = -1};
	objects_clear(&datapath->objects);
	if (netlink_get_netns_cookie(&datapath->netns_cookie, err))
		return -1;
	return open_pins(datapath, use, err);
}

void datapath_close(struct datapath *datapath)
{
	objects_close(&datapath->objects);
	cleanup_close_pointer(&datapath->lock);
}

bool datapath_is_usable(const struct datapath *datapath)
{
	return datapath->state == DATAPATH_READY || datapath->state == DATAPATH_OUTDATED;
}

const char *datapath_conntrack_gap(const struct datapath *datapath)
{
	struct meta meta;

	if (!datapath_is_usable(datapath) || !meta_read(&datapath->objects, &meta) ||
	    meta.conntrack != CONNTRACK_UNREADABLE)
		return NULL;
	return "this kernel does not tell programs what conntrack knows (Linux 6.0 and BTF do):"
	       " what another NAT of this host translates is only remembered as it leaves by an"
	       " uplink";
}

/* Linux 6.18 dropped the lock by which softirqs of a CPU wait for each other, unless it is asked
 * for (CONFIG_PREEMPT_RT_NEEDS_BH_LOCK), which nothing tells that every kernel has; some of 6.12
 * did so, too. */
const char *datapath_realtime_gap(void)
{
	struct utsname system;
	char text[4];

	text_file_read("/sys/kernel/realtime", text, sizeof(text));
	if (uname(&system) || version_is_older(system.release, "6.12") ||
	    (text[0] != '1' && !strstr(system.version, "PREEMPT_RT")))
		return NULL;
	return "this kernel is PREEMPT_RT, with which bpf-portmap is untested: unless it is built"
	       " with CONFIG_PREEMPT_RT_NEEDS_BH_LOCK, packets may interrupt each other on a CPU,"
	       " and be translated wrongly";
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
