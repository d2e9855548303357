/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * flow_select.h - selects the connections that `flows` shows, by their records alone, before
 * anything is looked up or formatted. Without any I/O.
 */
#pragma once

#include "operator/options.h"

/* Returns whether the connection has the peer, port, protocol, state and path of the options. */
bool flow_filter_matches(const struct options *options, const struct connection_key *key,
			 const struct connection *connection);

struct flow_record {
	struct connection_key key;
	struct connection connection;
	uint64_t size; /* by which it is sorted */
};

/* The N biggest, in memory for 2 N. Begins as {.limit, .sort_by}. */
struct flow_top {
	uint32_t limit;
	enum sort_by sort_by;
	struct flow_record *list; /* with room for 2 * limit */
	size_t count;
};

/* Adds a connection, which is kept as long as it may be one of the biggest. */
void flow_top_add(struct flow_top *top, const struct connection_key *key,
		  const struct connection *connection);
/* Sorts them, the biggest first. Nothing can be added afterwards. */
void flow_top_sort(struct flow_top *top);
void flow_top_release(struct flow_top *top);

/* How many connections one client, or one container, has. There may be as many of these as there
 * are clients, so that it has 40 bytes. */
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

/* Counts a connection: for a client those that it has begun, for a container all. */
void flow_groups_add(struct flow_groups *groups, const struct connection_key *key,
		     const struct connection *connection);
/* Fills in the list, the one with most flows first. Nothing can be added afterwards. */
void flow_groups_sort(struct flow_groups *groups);
void flow_groups_release(struct flow_groups *groups);
