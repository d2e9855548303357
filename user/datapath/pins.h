/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * pins.h - the directory in the BPF file system that holds one host's maps and programs.
 */
#ifndef DATAPATH_PINS_H
#define DATAPATH_PINS_H

#include <stddef.h>
#include <stdint.h>

#include "cni/error.h"
#include "datapath/objects.h"

#define PIN_DIRECTORY_SIZE 96

/* The directory of the host with this netns cookie: the first host on a BPF file system
 * has PIN_DIRECTORY, each other one a directory below. It need not exist. Code 102. */
int pins_find_directory(uint64_t netns_cookie, char directory[PIN_DIRECTORY_SIZE],
			struct cni_error *err);

/* Opens what is pinned there. *found counts it. A map of another shape than ours is left
 * out and named in *foreign (else NULL). Code 102. */
int pins_open(const char *directory, struct objects *objects, size_t *found, const char **foreign,
	      struct cni_error *err);

/* Pins all objects into a directory of its own and moves that, or what is in it, to its
 * place, meta last: whoever looks sees the old set, or the new, or that it is damaged.
 * Call it with the lock of BPFFS, which all hosts on it share. Code 102. */
int pins_write(const char *directory, const struct objects *objects, struct cni_error *err);

#endif
