/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* records.h - connections, aliases, places and counts of a world. */
#pragma once

#include "../packet/keys.h"
#include "world.h"

struct found_inwards {
	const struct world_connection *record; /* NULL: none */
	const struct portmap *mapping;         /* by which the packet may begin a connection */
};

void record_key_of(const struct tuple *tuple, enum way way, struct connection_key *key);

struct connection_key key_of_place(const struct assured *place);

/* NULL: there is none. */
const struct world_connection *record_at(const struct world *world,
					 const struct connection_key *key);
const struct world_alias *record_alias(const struct world *world,
				       const struct connection_key *external);
/* The same, if it is live. */
const struct world_connection *record_live(const struct world *world,
					   const struct connection_key *key);
/* The same, if it is confirmed too. */
const struct world_connection *record_settled(const struct world *world,
					      const struct connection_key *key);
const struct world_connection *record_outwards(const struct world *world,
					       const struct tuple *tuple);
/* Searches by alias, by mapping, by the tuple itself. */
void record_find_inwards(const struct world *world, const struct tuple *tuple,
			 struct found_inwards *found);

bool record_lives(const struct world *world, const struct world_connection *record);
bool record_is_note(const struct world_connection *record);
bool record_has_owner(const struct connection *value);
bool record_is_closed(uint32_t state);
uint32_t record_idle(const struct world *world, const struct connection *value);
/* Seconds that it may be idle. pressed: the table is nearly full. */
uint32_t record_longest_idle(enum protocol protocol, uint32_t state);
/* Then others may have what they need of it. */
uint32_t record_spared(const struct world_connection *record);
uint32_t record_patience(const struct world_connection *record, bool pressed);

bool world_is_published(const struct world *world, uint16_t port);
bool world_endpoint_likely(const struct world *world, const uint8_t *address);
bool world_noticed_external(const struct world *world, const uint8_t *address);
void world_notice_external(struct world *world, const uint8_t *address);
/* Fills in how many aliases have each port, as the programs count them. */
void world_count_ports(const struct world *world, struct external_port *ports);
/* Whether an alias has this port, or it counts as if one had. */
bool world_port_counts(const struct world *world, uint16_t port, enum protocol protocol);

/* Computes shares and usage from records and places; hands and generations stay. */
void world_count(const struct world *world, struct share *shares, struct usage *usage);
/* Whether the share of a client has the connection. */
bool record_has_client(const struct world_connection *record);
