/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* datapath.c - the maps and programs of the host we run on. */
#include "datapath/datapath.h"

#include <bpf/libbpf.h>
#include <stdlib.h>
#include <string.h>

#include "datapath/bpffs.h"
#include "datapath/refusal.h"
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

static enum datapath_state judge(struct datapath *datapath, size_t found)
{
	struct meta_head head;

	if (!found)
		return DATAPATH_ABSENT;
	if (datapath->objects.maps[MAP_META] < 0 ||
	    meta_head_read(datapath->objects.maps[MAP_META], &head))
		return datapath->foreign ? DATAPATH_FOREIGN : DATAPATH_DAMAGED;
	datapath->layout = head.layout;
	if (head.layout != LAYOUT || datapath->foreign)
		return DATAPATH_FOREIGN;
	if (found < OBJECT_COUNT || !head.complete)
		return DATAPATH_DAMAGED;
	return is_older(head.program_version, PROGRAM_VERSION) ? DATAPATH_OUTDATED : DATAPATH_READY;
}

int datapath_open(struct datapath *datapath, struct cni_error *err)
{
	size_t found = 0;

	/* It would write to stderr what are ordinary answers here. */
	libbpf_set_print(NULL);
	memset(datapath, 0, sizeof(*datapath));
	objects_clear(&datapath->objects);
	if (netns_get_cookie(&datapath->netns_cookie, err))
		return -1;
	if (!bpffs_is_mounted())
		return 0;
	if (pins_find_directory(datapath->netns_cookie, datapath->directory, err) ||
	    pins_open(datapath->directory, &datapath->objects, &found, &datapath->foreign, err))
		return -1;
	datapath->state = judge(datapath, found);
	return 0;
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
	static const char what_to_do[] = "use the bpf-portmap that made it, or stop all containers"
					 " that have mapped ports and remove the directory";

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
