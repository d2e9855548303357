/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * layouts.h - sets of maps that an older release has made: finding, reading and closing one.
 */
#ifndef DATAPATH_LAYOUTS_LAYOUTS_H
#define DATAPATH_LAYOUTS_LAYOUTS_H

#include "datapath/layouts/older.h"
#include "datapath/load/pins.h"

/* A set as it is pinned. Begins with older_clear(). */
struct older_set {
	const struct older_layout *layout;
	int maps[OLDER_MAPS]; /* -1: not open */
};

void older_clear(struct older_set *set);
void older_close(struct older_set *set);

/* Opens the set in the directory. `number` is what its meta has as layout. -1:
 * CNI_ERROR_KERNEL_REFUSED, also where the layout is of no release or a map is missing. */
int older_open(struct older_set *set, const char *directory, uint32_t number,
	       struct cni_error *err);

/* Closes what is open in `objects`, except for the maps that ours have in common with the set. */
void older_keep_shared(const struct older_set *set, struct objects *objects);

/* Lets only programs write to the set from now on, for good: commands of its release that
 * are under way fail, and later ones refuse it. CNI_ERROR_KERNEL_REFUSED, CNI_ERROR_TRY_AGAIN. */
int older_freeze(const struct older_set *set, struct cni_error *err);

/* Removes the pins of maps whose names we do not use. */
void older_unpin(const char *directory);

#define cleanup_older_set __attribute__((cleanup(older_close)))

#endif
