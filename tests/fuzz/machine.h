/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* machine.h - the loaded programs and their maps, kept equal to a struct world. */
#ifndef BPF_PORTMAP_TESTS_MACHINE_H
#define BPF_PORTMAP_TESTS_MACHINE_H

#include "wire.h"
#include "world.h"

enum hook { FROM_UPLINK, TO_UPLINK, FROM_BRIDGE, TO_CONTAINER, FROM_CONTAINER, HOOKS };

const char *machine_hook_name(enum hook hook);

void machine_load(void);

/* Seconds, of the clock that the programs read. */
uint32_t machine_now(void);

/* Makes the maps say what the world says, writing only what differs from the last one. */
void machine_write(const struct world *world);

/* Runs a program on a frame; *frame becomes what came out. Returns the verdict, TC_ACT_*,
 * or MACHINE_REFUSED where the kernel does not take such a frame. */
#define MACHINE_REFUSED (-1000)
int machine_run(enum hook hook, uint32_t device, uint32_t came_in_by, struct frame *frame);

/* Has the world know what now stands in the flow tables for this tuple. */
void machine_read_flow(struct world *world, const struct flow_key *key);

/* Has the world know what is remembered of the datagram, and recent enough. */
void machine_read_fragment(struct world *world, const struct fragment_key *key);

/* Has the world know which ports have been noticed. */
void machine_read_noticed(struct world *world);

/* All tuples of a table. Returns how many; at most `limit` are written. */
int machine_read_table(enum table table, struct flow_key *keys, int limit);

#endif
