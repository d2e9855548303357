/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * oracle.h - what must become of a packet.
 *
 * Written from the README and from "Theory of operation", and sharing nothing with bpf/ but
 * the layout of the maps: a second opinion is worth having only while it is one.
 */
#ifndef BPF_PORTMAP_TESTS_ORACLE_H
#define BPF_PORTMAP_TESTS_ORACLE_H

#include "machine.h"
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

struct expectation {
	enum answer answer;
	bool unsure;         /* only the invariants can be asked for */
	struct flow_key key; /* the tuple that the flow tables are asked for */
	/* Where the packet takes a flow, new or known: its translation and kind. */
	bool takes_flow;
	bool begins_flow;
	bool touches_flow; /* a half that is lost may be put back */
	bool repairs_flow; /* must be put back: once a second */
	bool evicts;       /* a closed flow's port will do */
	bool promotes;     /* an answered flow goes on */
	bool sees_fin;
	bool notices;  /* the port of a new masqueraded flow */
	bool notes;    /* a direct client, not believed yet */
	bool confirms; /* that it is what it says */
	/* What is to be remembered of a first fragment's datagram */
	bool remembers;
	enum fragment_fate fate;
	struct flow flow;
	enum choice choice;
	uint32_t redirect; /* the interface; 0: none */
	uint8_t mac[MAC_SIZE];
	const char *because;
};

void oracle_ask(const struct world *world, const struct visit *visit, struct expectation *expected);

/* Under which a fragment's datagram is remembered. */
void oracle_fragment_key(const struct visit *visit, struct fragment_key *key);
/* Whether the tuple behind the expected translation is no other flow's. */
bool oracle_tuple_free(const struct world *world, const struct expectation *expected);
/* The flow's own, whose other half is lost. */
bool oracle_port_is_own(const struct world *world, const struct expectation *expected,
			uint16_t port);
/* A masquerade port that the set allows and nobody else has. */
bool oracle_port_free(const struct world *world, const struct expectation *expected, uint16_t port);
bool oracle_port_in_set(const struct world *world, const struct expectation *expected,
			uint16_t port);

/* The bytes that must come out, by the expectation's flow. */
void oracle_translate(const struct visit *visit, const struct expectation *expected,
		      bool sender_translated, struct frame *frame);

#endif
