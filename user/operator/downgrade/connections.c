/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* connections.c - the connections of containers that change to an older version. */
#include "operator/downgrade/connections.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lifetime.h"

#include "datapath/load/maps.h"
#include "datapath/records/attachments.h"
#include "lib/array.h"
#include "lib/cleanup.h"
#include "lib/warning.h"

#define BOTH_FINS (STATE_FIN_INSIDE | STATE_FIN_OUTSIDE)

/* What reads them. */
struct reading {
	struct kept_connections *kept;
	struct owner *owners; /* by slot, those that live */
	uint32_t now;
};

static bool goes_on(const struct reading *reading, const struct connection_key *key,
		    const struct connection *connection)
{
	uint32_t state = connection->state, slot = connection->owner.slot;
	int32_t idle = (int32_t)(reading->now - connection->last_seen);

	return (connection->kind == FLOW_MAPPING || connection->kind == FLOW_MASQUERADE) &&
	       connection->id && state & STATE_REPLIED && !(state & STATE_UNCONFIRMED) &&
	       (state & BOTH_FINS) != BOTH_FINS && slot < MAX_SLOTS &&
	       owner_is(connection->owner, reading->owners[slot]) &&
	       idle <= (int32_t)connection_timeout(key->protocol, state);
}

static enum walk take_connection(const void *key, const void *value, void *context,
				 struct cni_error *err)
{
	const struct connection *connection = value;
	struct reading *reading = context;
	struct taken_over *taken;

	if (!goes_on(reading, key, connection))
		return WALK_ON;
	reading->kept->masqueraded += connection->kind == FLOW_MASQUERADE;
	taken = ARRAY_ADD(reading->kept->list, reading->kept->count);
	*taken = (struct taken_over){
		.owner = connection->owner,
		.external_port = connection->external_port,
		.peer_port = connection->peer_port,
		.kind = connection->kind,
		.begun_inside = connection->begun_inside,
	};
	memcpy(&taken->key, key, sizeof(taken->key));
	memcpy(taken->external_address, connection->external_address,
	       sizeof(taken->external_address));
	return WALK_ON;
}

int connections_read(struct kept_connections *kept, const struct datapath *datapath,
		     struct cni_error *err)
{
	cleanup_free struct owner *owners = need(calloc(MAX_SLOTS, sizeof(*owners)));
	cleanup_free struct attachment_entry *entries = NULL;
	struct reading reading = {.kept = kept, .owners = owners};
	struct timespec now;
	size_t count;

	/* The clock that the programs read. */
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	reading.now = (uint32_t)now.tv_sec;
	connections_release(kept);
	kept->attachments = need(calloc(MAX_SLOTS, sizeof(*kept->attachments)));
	if (attachment_list(datapath, &entries, &count, err))
		return -1;
	for (size_t i = 0; i < count; i++) {
		uint32_t slot = entries[i].attachment.owner.slot;

		if (slot >= MAX_SLOTS)
			continue;
		owners[slot] = entries[i].attachment.owner;
		kept->attachments[slot] = entries[i].key;
	}
	return map_walk(&datapath->objects, MAP_CONNECTIONS, take_connection, &reading, err);
}

void connections_give(struct kept_connections *kept)
{
	struct given_connections given = {
		.attachments = kept->attachments, .list = kept->list, .count = kept->count};
	cleanup_error struct cni_error why = {0};
	cleanup_host struct host host = {0};
	cleanup_older_set struct older_set older;

	older_clear(&older);
	if (!kept->count)
		return;
	if (host_open(&host, PINS_ALL, &why) ||
	    older_open(&older, host.datapath.directory, host.datapath.layout, &why)) {
		warning("%zu connections are not carried over: %s", kept->count,
			cni_error_message(&why));
		return;
	}
	older.layout->give_connections(older.maps, &given);
	kept->given = given.given;
}

void connections_release(struct kept_connections *kept)
{
	free(kept->attachments);
	free(kept->list);
	*kept = (struct kept_connections){0};
}
