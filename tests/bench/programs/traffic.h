/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* traffic.h - opens flows by packets, and runs programs on packets of many flows. */
#pragma once

#include "measured.h"

/* A hook on a packet's way: its devices, and the packet's addresses there. */
struct hop {
	const char *program;
	enum device device, came_in_by;
	enum side from, to;
};

/* A measured object, and its flows */
struct subject {
	struct bpf_object *object;
	uint32_t number;
	double opened;  /* when the flows were last opened */
	uint32_t fresh; /* the first flow that no packet has begun yet */
};

/* Makes room for so many flows of each subject. */
void traffic_prepare(uint32_t subjects, uint32_t flows);
void traffic_end(void);

/* Opens all flows of the world: packets pass all programs in both directions, until the flows are
 * assured, and skip the IP stack if they should. */
void traffic_open(struct subject *subject, const struct world *world);

/* Opens flows, and prints the average number of look-ups, insertions and so on for each packet. The
 * object is of counted.bpf.c. */
void traffic_count(struct subject *subject, const struct world *world);
void traffic_count_hop(const struct subject *subject, const struct world *world,
		       const struct hop *hop);

/* Nanoseconds for a packet that begins a flow. */
uint32_t traffic_measure_new(struct subject *subject, const struct world *world,
			     const struct hop *hop, const char *program, int *verdict);

/* Whether the programs will soon pass packets of the flows to the IP stack again. */
bool traffic_is_stale(const struct subject *subject, const struct world *world);

/* Nanoseconds for a packet of a random flow. program: NULL is `nothing`. verdict: the last one. */
uint32_t traffic_measure(const struct subject *subject, const struct world *world,
			 const struct hop *hop, const char *program, int *verdict);
