/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * abandoned.h - attachments whose veth is gone and for which DEL was not called: engines
 * forget a container that was killed with its namespace, or call DEL of another conflist.
 *
 * The programs see that such an owner is gone and leave its ports alone; what stands in the
 * maps is removed here.
 */
#ifndef DATAPATH_RECORDS_ABANDONED_H
#define DATAPATH_RECORDS_ABANDONED_H

#include "datapath/records/attachment_list.h"

struct nl_sock;

enum abandoned_which {
	ABANDONED_ALL,
	ABANDONED_NOTICED, /* only if the programs have met one since the last time */
};

/* Whether no container can use it any more: its veth is gone. One with a damaged name, which no
 * command can name, also where its slot is not its own. Takes the lock, so that an ADD that is
 * making it has finished; false where it cannot. */
bool attachment_is_abandoned(const struct objects *objects, struct nl_sock *socket,
			     const struct attachment_entry *entry);

/* Warns of each. A failure is a warning, too: callers have done their own job by then. Takes the
 * lock. */
void abandoned_remove(const struct datapath *datapath, struct nl_sock *socket,
		      enum abandoned_which which);

#endif
