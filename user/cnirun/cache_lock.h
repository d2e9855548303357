/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cache_lock.h - one operation at a time, which CNI leaves to the runtime (specification 1.1.0,
 * section 3): add, del and check of one attachment exclude each other, gc of a network excludes
 * them all.
 */
#ifndef CNIRUN_CACHE_LOCK_H
#define CNIRUN_CACHE_LOCK_H

#include "lib/error.h"
#include "cnirun/runtime_conf.h"

/* Begins as CACHE_LOCK_NONE. */
struct cache_lock {
	int network;
	int attachment;
	char *attachment_path;
};

#define CACHE_LOCK_NONE \
	{ \
		.network = -1, .attachment = -1 \
	}

/* Both wait as long as it takes; the end of a process releases its locks. CNI_ERROR_IO. */
int cache_lock_attachment(struct cache_lock *lock, const char *network,
			  const struct runtime_conf *conf, struct cni_error *err);
int cache_lock_network(struct cache_lock *lock, const char *network, const char *cache_directory,
		       struct cni_error *err);

void cache_lock_release(struct cache_lock *lock);

#define cleanup_cache_lock __attribute__((cleanup(cache_lock_release)))

#endif
