/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cache.h - what was added, in libcni's format and place:
 * CACHE/results/NETWORK-CONTAINERID-IFNAME.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/error.h"
#include "runtimes/cnirun/conflist.h"
#include "runtimes/cnirun/runtime_conf.h"

/* Begins as {0}. The members from `config` on are borrowed from root; NULL where missing. */
struct cache_entry {
	json_t *root; /* NULL: there is no such file */
	char *path;
	bool is_of_another; /* the file is another attachment's; cache_read() fails then */
	const char *config; /* in base64 */
	const char *network;
	const char *container_id;
	const char *ifname;
	const char *netns;
	json_t *args;
	json_t *capability_args;
	json_t *result;
};

/* Begins as {0}. */
struct cache_entries {
	struct cache_entry *entries;
	size_t count;
	json_t *possible; /* [{"containerID","ifname"}], never NULL after cache_read_all() */
};

/* The functions below take the directory, container ID and ifname from `conf`. */

/* Reads an entry. A missing file is no error: entry->root is NULL then. A file that is no cache
 * entry, or another attachment's (names with dashes may lead to the same file name):
 * CNI_ERROR_DECODE. A file without `kind` is a bare result, libcni's old format. */
int cache_read(struct cache_entry *entry, const char *network, const struct runtime_conf *conf,
	       struct cni_error *err);

/* Writes an entry atomically, with mode 0600, over an older one. Refuses what could not be read
 * again. CNI_ERROR_IO. */
int cache_write(const struct conflist *list, const struct runtime_conf *conf, json_t *result,
		struct cni_error *err);

/* Reads the conflist that the attachment was added with. CNI_ERROR_IO, CNI_ERROR_DECODE,
 * CNI_ERROR_INVALID_CONFIGURATION. */
int cache_read_conflist(const struct cache_entry *entry, struct conflist *list,
			struct cni_error *err);

/* Removes an entry; a missing file is success. CNI_ERROR_IO. */
int cache_remove(const char *network, const struct runtime_conf *conf, struct cni_error *err);

/* Reads all entries of the network, in the order of the files' names. Warns of a file that cannot
 * be used, or that does not say whose it is: the attachments that it may be of, by every way to
 * divide its name, are in `possible`. */
int cache_read_all(struct cache_entries *entries, const char *network, const char *cache_directory,
		   struct cni_error *err);

void cache_release(struct cache_entry *entry);
void cache_release_all(struct cache_entries *entries);

#define cleanup_cache_entry __attribute__((cleanup(cache_release)))
#define cleanup_cache_entries __attribute__((cleanup(cache_release_all)))

/* One operation at a time, which CNI leaves to the runtime (specification 1.1.0, section 3): add,
 * del and check of one attachment exclude each other, gc of a network excludes them all. The lock
 * is that of an open file, or -1. */
#define CACHE_LOCK_NONE (-1)

/* Both wait no longer than a plugin may take (conf->timeout): CNI_ERROR_TRY_AGAIN then. The end of
 * a process, and of the plugins that it has started, releases its locks. Two attachments may have
 * one lock, which is rare and costs time only. CNI_ERROR_IO. */
int cache_lock_attachment(int *lock, const char *network, const struct runtime_conf *conf,
			  struct cni_error *err);
int cache_lock_network(int *lock, const char *network, const struct runtime_conf *conf,
		       struct cni_error *err);

/* Gives the lock of an attachment up for that of the whole network, without waiting. False: others
 * are at work in the network, and there is no lock any more. */
bool cache_lock_widen(int lock);

void cache_lock_release(const int *lock);

/* Removes what runs that were killed have left in the network: entries that are half written. The
 * caller has the lock of the network. */
void cache_sweep(const char *network, const char *cache_directory);

#define cleanup_cache_lock __attribute__((cleanup(cache_lock_release)))
