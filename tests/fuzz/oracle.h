/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * oracle.h - what must become of a packet, and of the connections.
 *
 * Written from docs/, from abi.h and from "Theory of operation", and sharing nothing with
 * bpf/ but the layout of the maps: a second opinion is worth having only while it is one.
 */
#ifndef BPF_PORTMAP_TESTS_ORACLE_H
#define BPF_PORTMAP_TESTS_ORACLE_H

#include "machine.h"
#include "records.h"
#include "wire.h"
#include "world.h"

/* A packet at a hook. */
struct visit {
	enum hook hook;
	uint32_t device;
	uint32_t came_in_by; /* of egress; 0: the host's own */
	struct frame frame;
	struct wire wire;
};

enum answer {
	ANSWER_PASS, /* byte for byte */
	ANSWER_DROP,
	ANSWER_TRANSLATE,
	ANSWER_LIFT, /* only addressed to the bridge */
	ANSWER_HOLD, /* a fragment that waits for its first one, or goes on where there is no room
		      */
	ANSWERS,
};

enum choice {
	CHOICE_NONE,
	CHOICE_MASQUERADE, /* `port` is any of the set that is free */
	CHOICE_MOVED,      /* `peer_port` is any that is free */
};

/* In place of what the tuple has: of its destination inwards, of its source outwards. */
struct rewrite {
	uint8_t address[16];
	uint16_t port;
	uint16_t peer_port;
};

#define TOUCHES 3

/* A connection that was there before, and what becomes of it. */
struct touch {
	struct connection_key key;
	bool ends;
	struct connection after;
};

struct expectation {
	enum answer answer;
	bool unsure; /* only the invariants can be asked for */
	struct tuple tuple;
	bool takes; /* a connection, or a first fragment, says how the packet goes on */
	struct rewrite rewrite;
	enum choice choice;
	struct touch touches[TOUCHES];
	int touch_count;
	bool begins;
	struct world_connection begun; /* without what is chosen */
	bool takes_place;              /* half-open: another's, if none is free */
	bool takes_assured;            /* a dead or closed one's, if none is free */
	bool frees_ports;              /* those of dead ones, or of those that can do without */
	/* What is to be remembered of a first fragment's datagram */
	bool remembers;
	enum fragment_fate fate;
	uint32_t redirect; /* the interface; 0: none */
	uint8_t mac[MAC_SIZE];
	const char *because;
};

void oracle_ask(const struct world *world, const struct visit *visit, struct expectation *expected);

/* The tuple of a packet; of an error, what an answer to the quoted packet would have. */
void oracle_tuple(const struct wire *wire, enum direction direction, struct tuple *tuple);
/* Under which a fragment's datagram is remembered. */
void oracle_fragment_key(const struct visit *visit, struct fragment_key *key);
/* A masquerade port that the set allows; one that nobody else has, or needs. */
bool oracle_port_in_set(const struct world *world, const struct expectation *expected,
			uint16_t port);
bool oracle_port_free(const struct world *world, const struct expectation *expected, uint16_t port);
/* Does the ring of half-open connections have no place for the draft's? */
bool oracle_ring_is_shut(const struct world *world, const struct expectation *expected);
/* Why a connection may end that the packet has nothing to do with: it is dead, closed, ... */
bool oracle_may_end(const struct world *world, const struct expectation *expected,
		    const struct world_connection *record);

/* The bytes that must come out. */
void oracle_translate(const struct visit *visit, const struct expectation *expected,
		      bool sender_translated, struct frame *frame);

#endif
