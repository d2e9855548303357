/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * detach.h - undoes a setup, also one that was killed, failed, or was forgotten.
 */
#pragma once

#include "lib/error.h"
#include "cnirun/cache.h"
#include "cnirun/conflist.h"
#include "netavark/request.h"

/* Reads what setup has written down: none is no error, and something that is broken is as good as
 * none. CNI_ERROR_DECODE where it is another attachment's, CNI_ERROR_IO where it cannot be read. */
int detach_read_written(struct cache_entry *entry, const struct request *request,
			struct cni_error *err);

/* Undoes what a setup has done, or may have, in the namespace that it wrote down unless the request
 * has one. Goes on after errors; what is written down stays then, for the next call. *list: the
 * list that it goes by, to be released also after a failure. The caller has the attachment's lock,
 * or the network's. */
int detach(struct conflist *list, const struct request *request, struct cni_error *err);

/* Does it where no teardown came for it: warns of a failure. `what` begins the warning. */
void detach_forgotten(struct conflist *list, struct request request, const char *what);

/* When a container has left the network, detaches others whose namespace has gone without a
 * teardown; removes the bridge with the last container. `list` is what the container was detached
 * by. Does nothing, and gives the lock up, where another call is at work in the network, which may
 * need the bridge. */
void leave_network(int lock, const struct request *request, const struct conflist *list);
