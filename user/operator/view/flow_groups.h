/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * flow_groups.h - how many connections each client, or each container, has.
 */
#ifndef OPERATOR_VIEW_FLOW_GROUPS_H
#define OPERATOR_VIEW_FLOW_GROUPS_H

#include <linux/types.h>
#include <stddef.h>

#include "abi.h"
#include "lib/address.h"
#include "operator/options.h"

/* As many as clients: 40 bytes. */
struct flow_group {
	union {
		uint8_t client[CNI_ADDRESS_SIZE]; /* SORT_CLIENT */
		struct owner owner;               /* SORT_CONTAINER; behind it zeros */
	};
	uint32_t flows, half_open;
	uint64_t packets, bytes;
};

/* Begins as {.by}. */
struct flow_groups {
	enum sort_by by;
	void *tree; /* of struct flow_group, as tsearch() makes it */
	struct flow_group **list;
	size_t count;
};

/* Of a client those that it has begun; of a container all. */
void flow_groups_add(struct flow_groups *groups, const struct connection_key *key,
		     const struct connection *connection);
/* Fills in the list, the one with most flows first. Nothing can be added afterwards. */
void flow_groups_sort(struct flow_groups *groups);
void flow_groups_release(struct flow_groups *groups);

#endif
