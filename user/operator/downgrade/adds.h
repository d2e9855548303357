/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * adds.h - the ADDs by which the containers that run were made, to be made once more.
 *
 * What every version of bpf-portmap speaks is CNI, and runtimes keep what they said (libcni's
 * cache). The list is in a file from before the first change until after the last ADD, so that what
 * a killed run has left can be turned back.
 */
#ifndef OPERATOR_DOWNGRADE_ADDS_H
#define OPERATOR_DOWNGRADE_ADDS_H

#include <jansson.h>
#include <stdint.h>

#include "lib/error.h"

#define ADDS_PATH_SIZE 64

/* Begins as ADDS_NONE. */
struct adds {
	json_t *list; /* as plan_adds() makes it; NULL: there is no file */
	int file;     /* which is locked; -1: there is none */
	char path[ADDS_PATH_SIZE];
};

#define ADDS_NONE \
	{ \
		.file = -1 \
	}

/* Where this host's list is, if there is one. */
void adds_path(char path[ADDS_PATH_SIZE], uint64_t netns_cookie);

/* Opens what a run that was killed has left, and takes its lock.
 * CNI_ERROR_TRY_AGAIN where another run is at work, CNI_ERROR_IO. */
int adds_open(struct adds *adds, struct cni_error *err);

/* Writes the file, where there is none. `list` is given away. CNI_ERROR_TRY_AGAIN where another run
 * was faster, CNI_ERROR_IO. */
int adds_save(struct adds *adds, json_t *list, struct cni_error *err);

/* Removes it. */
void adds_finish(struct adds *adds);
void adds_close(struct adds *adds);

/* Runs a program as CNI has it for one of the list, in the network namespace. CNI_ERROR_IO and what
 * the program says. */
int add_make(const json_t *add, const char *command, const char *netns, const char *binary,
	     struct cni_error *err);

/* Has each made by this program, but for containers that are gone; ends at one that fails, or whose
 * network namespace is not found. *count: how many were made. CNI_ERROR_IO naming what failed. */
int adds_run(const struct adds *adds, const char *binary, size_t *count, struct cni_error *err);

/* Has this binary make those that have no attachment in the maps. As above, but goes on after one
 * that fails. */
int adds_restore(const struct adds *adds, size_t *count, struct cni_error *err);

#define cleanup_adds __attribute__((cleanup(adds_close)))

#endif
