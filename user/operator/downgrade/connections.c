/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* connections.c - the connections of containers that change to an older version. */
#include "operator/downgrade/connections.h"

#include <stdlib.h>
#include <string.h>

#include "datapath/load/maps.h"
#include "lib/array.h"
#include "lib/cleanup.h"
#include "lib/warning.h"
#include "operator/view.h"

#define ENDED (STATE_VOID | STATE_UNCONFIRMED)
#define BOTH_FINS (STATE_FIN_INSIDE | STATE_FIN_OUTSIDE)

/* What reads them. */
struct reading {
	struct kept_connections *kept;
	struct view view;
};

static enum walk take_connection(const void *key, const void *value, void *context,
				 struct cni_error *err)
{
	const struct connection *connection = value;
	struct reading *reading = context;
	struct taken_over *taken;

	if ((connection->kind != FLOW_MAPPING && connection->kind != FLOW_MASQUERADE) ||
	    !(connection->state & STATE_REPLIED) || connection->state & ENDED ||
	    (connection->state & BOTH_FINS) == BOTH_FINS || connection->owner.slot >= MAX_SLOTS ||
	    !view_is_alive(&reading->view, key, connection))
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

int connections_read(struct kept_connections *kept, struct cni_error *err)
{
	struct reading reading = {.kept = kept, .view = {.is_quiet = true}};
	cleanup_free struct attachment_entry *entries = NULL;
	const struct datapath *datapath = &reading.view.datapath;
	size_t count = 0;
	int result = 0;

	connections_release(kept);
	kept->attachments = need(calloc(MAX_SLOTS, sizeof(*kept->attachments)));
	if (view_open(&reading.view, err) ||
	    (!reading.view.is_empty &&
	     (attachment_list(datapath, &entries, &count, err) ||
	      map_walk(&datapath->objects, MAP_CONNECTIONS, take_connection, &reading, err))))
		result = -1;
	for (size_t i = 0; i < count; i++)
		if (entries[i].attachment.owner.slot < MAX_SLOTS)
			kept->attachments[entries[i].attachment.owner.slot] = entries[i].key;
	view_close(&reading.view);
	return result;
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
