/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* generator.h - random worlds, and packets that concern them. */
#pragma once

#include "oracle.h"

#define HISTORY 8

/* An earlier packet of this sequence. */
struct passage {
	enum hook hook;
	uint32_t device;
	struct frame in;
	struct frame out; /* length 0: dropped */
};

struct history {
	struct passage passages[HISTORY];
	int count;
};

void generator_world(struct world *world);
/* Fills in connections with their aliases, places and counts. */
void generator_records(struct world *world);
/* Sometimes an owner that is dead. */
struct owner generator_owner(const struct world *world, uint32_t slot);
/* Also parses the frame. */
void generator_visit(const struct world *world, const struct history *history, struct visit *visit);
