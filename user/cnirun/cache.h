/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cache.h - what was added, in libcni's format and place:
 * DIRECTORY/results/NETWORK-CONTAINERID-IFNAME.
 */
#ifndef CNIRUN_CACHE_H
#define CNIRUN_CACHE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "cni/error.h"
#include "cnirun/conflist.h"

#define CACHE_DEFAULT_DIRECTORY "/var/lib/cni"

/* Begins as {0}. All but root and path is borrowed from root; NULL where missing. */
struct cache_entry {
	json_t *root; /* NULL: there is no such file */
	char *path;
	bool foreign; /* the file is another attachment's; cache_read() fails then */
	const char *network;
	const char *container_id;
	const char *ifname;
	const char *netns;
	json_t *args;            /* [["K","V"]] */
	json_t *capability_args; /* an object */
	json_t *result;          /* an object */
};

/* An entry, as it is to be written. */
struct cache_record {
	const struct conflist *list;
	const char *container_id;
	const char *ifname;
	const char *netns;
	json_t *args; /* NULL or empty: left out, as the next one */
	json_t *capability_args;
	json_t *result;
};

/* Begins as {0}. */
struct cache_entries {
	struct cache_entry *entries;
	size_t count;
	json_t *possible; /* [{"containerID","ifname"}], never NULL after cache_read_all() */
};

/* A file that is missing is no error: entry->root is NULL then. One that is no cache
 * entry, or another attachment's (names with dashes may meet in one file name): code 6.
 * A file without `kind` is a bare result, libcni's old format. */
int cache_read(struct cache_entry *entry, const char *directory, const char *network,
	       const char *container_id, const char *ifname, struct cni_error *err);

/* Atomic, mode 0600; replaces what was there. Refuses what could not be read again. Code 5. */
int cache_write(const struct cache_record *record, const char *directory, struct cni_error *err);

/* Not being there is success. Code 5. */
int cache_remove(const char *directory, const char *network, const char *container_id,
		 const char *ifname, struct cni_error *err);

/* All entries of the network, in the order of the files' names. A file that cannot be
 * used, or that does not say whose it is, is warned of; `possible` has whose it may be by
 * its name, every way to divide that. */
int cache_read_all(struct cache_entries *entries, const char *directory, const char *network,
		   struct cni_error *err);

void cache_release(struct cache_entry *entry);
void cache_release_all(struct cache_entries *entries);

#define cleanup_cache_entry __attribute__((cleanup(cache_release)))
#define cleanup_cache_entries __attribute__((cleanup(cache_release_all)))

#endif
