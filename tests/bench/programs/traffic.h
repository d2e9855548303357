/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* traffic.h - packets of many flows, given to a program, and flows opened by such packets. */
#ifndef BPF_PORTMAP_TESTS_TRAFFIC_H
#define BPF_PORTMAP_TESTS_TRAFFIC_H

#include "measured.h"

/* A hook on a packet's way: where, and whose addresses the packet has there. */
struct hop {
	const char *program;
	enum device device, came_in_by;
	enum side from, to;
};

/* An object, and its own flows */
struct subject {
	struct bpf_object *object;
	uint32_t number;
	double opened; /* when the IP stack began to be shown all of its flows, the last time */
};

/* Flows of so many in all can be opened: in each of so many subjects. */
void traffic_prepare(uint32_t subjects, uint32_t flows);
void traffic_end(void);

/* Opens all flows of the world: their packets take all programs on their way, there and back,
 * until both sides know them, and past the IP stack where they are to skip it. */
void traffic_open(struct subject *subject, const struct world *world);

/* Opens flows and prints what each packet on the way has cost in look-ups, insertions and so on,
 * on average. The object is of counted.bpf.c. */
void traffic_count(struct subject *subject, const struct world *world);
void traffic_count_hop(const struct subject *subject, const struct world *world,
		       const struct hop *hop);

/* Whether the programs will soon want the IP stack to see the flows again. */
bool traffic_is_stale(const struct subject *subject, const struct world *world);

/* Nanoseconds a packet, of random flows. program: NULL is nothing, for comparison. verdict: of
 * the last one. */
uint32_t traffic_measure(const struct subject *subject, const struct world *world,
			 const struct hop *hop, const char *program, int *verdict);

#endif
