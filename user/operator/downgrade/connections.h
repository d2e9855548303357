/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * connections.h - the connections of containers that change to an older version: read from our maps
 * before, written to its maps afterwards.
 */
#ifndef OPERATOR_DOWNGRADE_CONNECTIONS_H
#define OPERATOR_DOWNGRADE_CONNECTIONS_H

#include "datapath/layouts/layouts.h"
#include "host/host.h"

/* Begins as {0}. */
struct kept_connections {
	struct attachment_key *attachments; /* by slot in our maps */
	struct taken_over *list;
	size_t count, masqueraded;
	size_t given; /* the older version goes on with them */
};

/* Those that were answered, to mapped ports and masqueraded. CNI_ERROR_KERNEL_REFUSED. */
int connections_read(struct kept_connections *kept, const struct datapath *datapath,
		     struct cni_error *err);

/* Writes them where the older version has its maps by now. A warning where that cannot be. */
void connections_give(struct kept_connections *kept);

void connections_release(struct kept_connections *kept);

#endif
