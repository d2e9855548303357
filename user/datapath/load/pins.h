/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* pins.h - the directory in the BPF file system that holds one host's maps and programs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/error.h"
#include "datapath/load/bpffs.h"
#include "datapath/load/objects.h"

#define PIN_DIRECTORY_SIZE 96

#define PINS_ROOT BPFFS "/" PIN_DIRECTORY
/* No dot in it: the BPF file system refuses those. */
#define PINS_LOADING PINS_ROOT "-loading"

/* Where a host's objects are, and its meta, which says so. Begins as {.meta = -1}, which is
 * to be closed. */
struct pins {
	char directory[PIN_DIRECTORY_SIZE];
	int meta; /* its file descriptor; -1: not pinned */
	bool meta_has_our_shape;
	bool usable; /* the directory is root's alone */
	bool has_head;
	struct meta_head head;
};

/* Finds the directory of the host with this netns cookie: the first host on a BPF file system has
 * PIN_DIRECTORY, each other one a directory below. It need not exist; one that belongs to another
 * user counts as none, with a warning. CNI_ERROR_KERNEL_REFUSED. */
int pins_find(uint64_t netns_cookie, struct pins *pins, struct cni_error *err);

/* What a command does with the objects, and so how it has the lock of the set (lock.h), and looks
 * at the pins. It opens each, unless: */
enum datapath_use {
	DATAPATH_READ, /* look, without the lock */
	DATAPATH_WORK, /* with what is there, beside others */
	/* The same, but it looks whether each is there, and opens maps by their ids in meta when
	 * they are needed, and of programs knows the ids alone ... */
	DATAPATH_WORK_LISTED,
	DATAPATH_WORK_BY_META, /* ... or relies on meta alone */
	DATAPATH_ALONE,        /* load, replace or remove it */
};

struct pins_found {
	size_t count;         /* objects that are pinned */
	bool is_of_last_load; /* the programs are */
	const char *foreign;  /* a map of another shape than ours, which is left out; or NULL */
	bool by_ids;          /* they were opened by their ids, of which pins->meta was one */
	/* Of DATAPATH_WORK_LISTED: a bit for each enum socket_program whose link is pinned. */
	uint32_t links;
};

/* Opens what is pinned there; by ids only where these are a complete set. CNI_ERROR_KERNEL_REFUSED.
 */
int pins_open(struct pins *pins, enum datapath_use use, struct objects *objects,
	      struct pins_found *found, struct cni_error *err);

/* Pins all objects into PINS_LOADING and moves that, or what is in it, to its place, meta last:
 * other processes see the old set, or the new one, or that it is damaged. Call it with
 * the lock below. CNI_ERROR_KERNEL_REFUSED. */
int pins_write(const char *directory, const struct objects *objects, struct cni_error *err);

/* One loader at a time on each BPF file system, which hosts may share: flock on the directory into
 * which objects are pinned before they are moved to their place. A loader makes it, only root can
 * open it, and it is on the file system that it protects.
 *
 * *lock begins as -1. Afterwards PINS_LOADING exists, with what a killed loader left.
 * Moves away what other users have put in its place. Take it before the host's lock.
 * CNI_ERROR_TRY_AGAIN, CNI_ERROR_KERNEL_REFUSED, CNI_ERROR_IO. */
int pins_lock_take(int *lock, struct cni_error *err);
void pins_lock_release(int *lock);

/* Removes all that is pinned in the directory, of any layout, meta last, and what killed loaders
 * left; not the directories of other hosts. Programs that only a pin held are gone then. Call it
 * with the lock above. CNI_ERROR_KERNEL_REFUSED. */
int pins_remove(const char *directory, struct cni_error *err);

#define cleanup_pins_lock __attribute__((cleanup(pins_lock_release)))
