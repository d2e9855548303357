/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* question.h - internal to the oracle: one packet whose expected result is computed. */
#pragma once

#include "oracle.h"

struct question {
	const struct world *world;
	const struct visit *visit;
	struct expectation *expected;
};

enum used {
	USED,
	USED_ENDED,   /* the connection has ended */
	USED_REFUSED, /* it would become assured, but there is no room */
};

bool same_owner(const struct owner *a, const struct owner *b);
void answer(struct question *question, enum answer answer, const char *because);
bool begins_tcp(const struct wire *wire);
bool begins_direct(const struct wire *wire);
bool leaves(const struct visit *visit);

/* Whether the rewrite changes the tuple. */
bool changes(const struct tuple *tuple, const struct rewrite *rewrite);
void rewrite_by(const struct world_connection *record, enum way way, struct rewrite *rewrite);
/* Expects the packet to be translated as the connection says. */
void take(struct question *question, const struct world_connection *record, enum way way,
	  const char *because);

/* oracle_use.c */
struct touch *touch_of(struct question *question, const struct world_connection *record);
void end_record(struct question *question, const struct world_connection *record);
bool refresh(struct question *question, const struct world_connection *record);
void track_first(struct connection *value, const struct wire *wire);
enum used use(struct question *question, const struct world_connection *record, enum way way,
	      size_t length);
bool is_candidate(const struct question *question, const struct world_connection *record,
		  enum way way);

/* oracle_limits.c */
bool share_is_left(const struct world *world, const struct connection_key *key,
		   const struct connection *value);
/* Whether its account has a sixteenth of the table. */
bool is_hog(const struct world *world, const struct connection_key *key,
	    const struct connection *value);
bool place_is_left(const struct world *world);
/* Whether it may lose its port to another connection. */
bool can_do_without(const struct world *world, const struct world_connection *record);

/* oracle_begin.c */
struct world_connection *draft(struct question *question, const struct owner *owner,
			       enum flow_kind kind, enum way way);
/* Whether a live connection has the key and would not be replaced. */
bool is_taken(struct question *question, const struct connection_key *key);
/* Expects the draft to begin. */
void begin(struct question *question);
void begin_mapped(struct question *question, const struct portmap *mapping);
void begin_direct(struct question *question, const struct endpoint *endpoint);
void begin_masqueraded(struct question *question, const struct endpoint *endpoint, bool outward);
void begin_hosts(struct question *question, enum flow_kind kind);
/* The address that routing, or the container's policy, gives a connection. */
bool choose_source(const struct question *question, const struct owner *owner, bool outward,
		   uint8_t *address);
void remember_strict(struct question *question, const struct endpoint *from);
