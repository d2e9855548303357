/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * oracle.h - the expected result for a packet and for the connections.
 *
 * Written from docs/, abi.h and "Theory of operation". It shares only the layout of the maps with
 * bpf/, so that a mistake there is not repeated here.
 */
#pragma once

#include "machine.h"
#include "records.h"
#include "wire.h"
#include "world.h"

/* A packet at a hook. */
struct visit {
	enum hook hook;
	uint32_t device;
	uint32_t came_in_by; /* at egress; 0: a packet of the host itself */
	bool verified;       /* at egress: it has from_container's seal */
	struct frame frame;
	struct wire wire;
};

enum answer {
	ANSWER_PASS, /* unchanged */
	ANSWER_DROP,
	ANSWER_TRANSLATE,
	ANSWER_LIFT, /* only the destination MAC becomes the bridge's */
	ANSWER_HOLD, /* held until the first fragment comes, or passed if there is no room */
	ANSWERS,
};

enum choice {
	CHOICE_NONE,
	CHOICE_MASQUERADE, /* `port` is any free one of the set, also for the host */
	CHOICE_MOVED,      /* `peer_port` is any free one */
};

/* New values for the tuple: inwards for its destination, outwards for its source. */
struct rewrite {
	uint8_t address[16];
	uint16_t port;
	uint16_t peer_port;
};

#define TOUCHES 3

/* An existing connection that the packet changes. */
struct touch {
	struct connection_key key;
	bool ends;
	struct connection after;
};

struct expectation {
	enum answer answer;
	bool unsure; /* only the invariants can be checked */
	struct tuple tuple;
	bool takes; /* a connection or a first fragment decides on the packet */
	struct rewrite rewrite;
	enum choice choice;
	struct touch touches[TOUCHES];
	int touch_count;
	bool begins;
	struct world_connection begun; /* without the chosen port */
	bool takes_place;              /* half-open: may push out another */
	bool takes_assured;            /* may push out a dead or closed one */
	bool frees_ports;              /* may end dead or closed ones that have the port */
	/* The fate to be recorded for a first fragment's datagram */
	bool remembers;
	enum fragment_fate fate;
	uint32_t redirect; /* the interface; 0: none */
	uint8_t mac[MAC_SIZE];
	const char *because;
};

void oracle_ask(const struct world *world, const struct visit *visit, struct expectation *expected);

/* The tuple of a packet; of an error, that of an answer to the quoted packet. */
void oracle_tuple(const struct wire *wire, enum direction direction, struct tuple *tuple);
/* The key of a fragment's datagram. */
void oracle_fragment_key(const struct visit *visit, struct fragment_key *key);
/* Whether the set contains the port; whether no other flow, mapping or socket has it. */
bool oracle_port_in_set(const struct world *world, const struct expectation *expected,
			uint16_t port);
bool oracle_port_is_own(const struct world *world, const struct expectation *expected,
			uint16_t port);
bool oracle_port_free(const struct world *world, const struct expectation *expected, uint16_t port);
/* Whether the ring of half-open connections has no place for the draft. */
bool oracle_ring_is_shut(const struct world *world, const struct expectation *expected);
/* Whether a connection of other packets may end: because it is dead, closed, ... */
bool oracle_may_end(const struct world *world, const struct expectation *expected,
		    const struct world_connection *record);

/* Whether it leaves, and neither the host has made it nor from_container has seen it. */
bool oracle_is_unverified(const struct visit *visit);

/* Computes the expected output. */
void oracle_translate(const struct visit *visit, const struct expectation *expected,
		      bool sender_translated, struct frame *frame);
