/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * world.h - the two worlds: world.sh that plays the host of each, and the interfaces of client,
 * server and containers, where this program sends frames, and sees what arrives.
 */
#pragma once

#include <sys/types.h>

#include "packet.h"

enum end { CLIENT, SERVER, WEB, VICTIM, NAMED, PLAIN, ENDS, HOST = ENDS };
enum which_world { REFERENCE, OURS, WORLDS };

#define MAX_ARRIVALS 64
#define ARRIVAL_TEXT 700

struct arrival {
	enum end end;
	struct packet packet;
	char text[ARRIVAL_TEXT]; /* What is compared; filled in by the observer */
	bool copy;               /* of what was sent, not made by a stack */
};

struct endpoint {
	int fd, netns;
	uint8_t mac[6], gateway[6];
	struct in6_addr address[2]; /* IPv4, IPv6 */
};

struct fragments {
	struct headers first;
	enum end end;
	uint64_t seen[MAX_PACKET / 8 / 64 + 1];
	size_t total;
	uint8_t bytes[MAX_PACKET];
};

struct world {
	pid_t pid;
	int commands, answers; /* pipes of world.sh */
	int host;              /* its network namespace */
	int counters;          /* conntrack's statistics there */
	struct endpoint ends[ENDS];
	struct arrival arrivals[MAX_ARRIVALS];
	size_t count;
	struct fragments fragments[16];
	size_t fragments_count;
};

extern struct world worlds[WORLDS];
extern const char *const end_names[];
extern const char *const world_names[];

/* Both are made at the same time. False: world.sh has said why. */
bool worlds_make(const char *script);
void worlds_end(void);
/* world.sh runs it in both worlds; reads again what it tells about containers. */
bool worlds_command(const char *command);

/* Runs what follows in the network namespace of a world's host, until host_leave. */
void host_enter(const struct world *world);
void host_leave(void);

/* How many packets connection tracking has called INVALID, and dropped since their tuple is another
 * connection's: columns of nf_conntrack's statistics */
enum counter { COUNTER_INVALID = 4, COUNTER_REFUSED = 9 };
unsigned long world_counter(const struct world *world, enum counter column);

/* The end that has the address, or HOST */
enum end end_of(const struct world *world, const struct in6_addr *address);
/* Sends an IP packet, to the neighbour that has the destination, or to the gateway. `partial`: the
 * device is to compute the transport's checksum, whose field is at this offset. */
void world_send(struct world *world, enum end from, const struct packet *packet,
		const uint8_t *bytes, size_t size);

struct arrival *world_note(struct world *world, enum end end);

/* Returns when all that was sent has gone everywhere it goes, and collects it. */
void barrier_open(const char *near, const char *far);
void worlds_settle(void);
