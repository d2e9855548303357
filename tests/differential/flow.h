/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * flow.h - what the ends of a connection know about it. Each flow has a place of its own, with
 * ports of its own, so that a step that is left out changes no other place.
 */
#pragma once

#include "world.h"

#define FLOWS 24
#define STEP_TEXT 400

/* What one world has shown of a flow */
struct view {
	bool arrived; /* at the peer, which may answer */
	enum end at;
	struct packet forward; /* as it arrived there last */
	bool answered;
	struct packet reply; /* as it arrived at the origin last */
	bool learned, reset; /* reset: a RST has arrived since */
	bool ended, midway;  /* of TCP: by a RST of either; what came first, or then, was no SYN */
	struct in6_addr address; /* of the origin, as the peer sees it */
	uint16_t port;
	uint32_t origin_expects, peer_expects; /* of TCP: the next sequence number */
	int fd;                                /* The socket, if the origin is the host */
	bool connecting, connected;
};

struct flow {
	bool used, quarantined;
	enum end origin;
	struct packet first; /* addresses and ports as the origin sends them */
	bool forged;         /* The source is not the origin's own */
	unsigned stage;      /* of TCP: 0 a SYN is next, 1 a SYN-ACK, 2 an ACK, 3 anything */
	uint32_t origin_sequence, peer_sequence;
	/* Of the host's socket */
	bool connects, binds;
	struct in6_addr bound;
	struct view views[WORLDS];
};

/* One step, which both worlds make */
struct step {
	unsigned number;
	char text[STEP_TEXT];
	struct flow *flow; /* NULL: an event */
	bool forward;      /* from the origin, not from the peer */
	bool odd;          /* not what a sound stack would send in this state */
	bool error;        /* an ICMP error about what was received */
	bool whole;        /* not in fragments, or all of them */
	bool sends[WORLDS];
	struct packet sent[WORLDS];
	bool unserved;         /* This connection went to no container in the reference before. */
	unsigned long invalid; /* how many packets the reference's conntrack called so */
	unsigned long refused[WORLDS]; /* how many each conntrack dropped as another's */
};

extern struct flow flows[FLOWS];

/* --- random.c: the same numbers for the same seed and step */
void random_begin(uint64_t seed, uint64_t step);
unsigned random_below(unsigned limit);
bool random_chance(unsigned percent);

/* --- steps.c: chooses what to do and does it */
void step_make(struct step *step);
void flows_forget(void);

/* --- events.c */
/* What others do at the host. False: world.sh failed. */
bool event_make(struct step *step);
void events_forget(void);
/* Whether the host's second address at its uplink is there now */
bool events_second_address(void);
/* Whether packets of ours may skip the stack */
bool fast_path_is_on(void);

/* --- host.c: processes of the host */
void host_open(struct world *world);
void host_close(void);
/* Opens the socket of a flow and begins. */
void host_begin(struct flow *flow, enum which_world which, const struct step *step);
void host_send(struct flow *flow, enum which_world which, const struct step *step);
void host_end(struct flow *flow);
/* Reads all sockets, which may answer: then there is more to come, and it returns true. */
bool host_collect(enum which_world which, struct step *step);

/* --- observe.c */
/* Learns from what has arrived, and says in `text` what is to be compared. From the arrival with
 * this number on. Returns true if a model of a peer has answered. */
bool observe(struct step *step, enum which_world which, size_t from);

/* The reference has let a connection with these addresses and ports go where it came from, or past.
 */
void unserved_note(const struct step *step);
bool unserved_before(const struct flow *flow);
void unserved_forget(void);

/* --- compare.c */
struct difference {
	const struct step *step;
	/* What arrived in one world only */
	const struct arrival *only[WORLDS][MAX_ARRIVALS];
	size_t count[WORLDS];
};
bool compare(struct difference *difference, const struct step *step);
/* --- wanted.c: why a difference is wanted, or NULL */
const char *wanted(const struct difference *difference);
