/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * older.h - what is known of the layout of a release: a folder beside this file has it, by version.
 */
#ifndef DATAPATH_LAYOUTS_OLDER_H
#define DATAPATH_LAYOUTS_OLDER_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "adoption.h"
#include "datapath/load/objects.h"
#include "lib/error.h"

#define OLDER_MAPS 16

/* A map that is read, and that ours takes the place of. */
struct older_map {
	const char *name;
	uint32_t key_size;
	uint32_t value_size;
	bool is_frozen;   /* user space writes it: once it is copied, nobody may */
	bool is_obsolete; /* we have no map of this name */
};

typedef int taken_over_visit(const struct taken_over *connection, void *context,
			     struct cni_error *err);

/* Connections of ours for an older set. */
struct given_connections {
	const struct attachment_key *attachments; /* whose they are */
	const struct taken_over *list;            /* owner.slot: the index of its attachment */
	size_t count;
	size_t given; /* so many have a record in the set now */
};

/* `maps` are file descriptors in the order of the table `maps`. */
struct older_layout {
	uint32_t layout;
	const char *version;
	const struct older_map *maps; /* meta first */
	size_t map_count;
	/* Maps with the same shape and meaning as ours, which our programs go on with; ends with
	 * MAP_COUNT. */
	const enum map_number *shared;
	/* Fills our other maps, but for those of connections. Again and again: each time the
	 * result is the same. CNI_ERROR_KERNEL_REFUSED. */
	int (*copy_records)(const int *maps, const struct objects *to, struct cni_error *err);
	/* Sets the marks of `noticed` that programs have set meanwhile. */
	void (*copy_marks)(const int *maps, const struct objects *to);
	/* Returns how many answered connections the set has room for; 0: not known. */
	uint32_t (*room)(const int *maps);
	/* Visits the connections, those that are answered first. CNI_ERROR_KERNEL_REFUSED. */
	int (*walk_connections)(const int *maps, taken_over_visit *visit, void *context,
				struct cni_error *err);
	/* The way back: writes those whose attachments the set has, unless their tuple is another
	 * one's by now. */
	void (*give_connections)(const int *maps, struct given_connections *connections);
};

#endif
