/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* machine.h - the loaded programs and their maps, kept equal to a struct world. */
#ifndef BPF_PORTMAP_TESTS_MACHINE_H
#define BPF_PORTMAP_TESTS_MACHINE_H

#include "wire.h"
#include "world.h"

enum hook { FROM_UPLINK, TO_UPLINK, FROM_BRIDGE, TO_CONTAINER, FROM_CONTAINER, HOOKS };

const char *machine_hook_name(enum hook hook);

/* The programs with tables of each of the sizes. */
void machine_load(void);

/* Seconds, of the clock that the programs read. */
uint32_t machine_now(void);

/* Makes the maps say what the world says, writing only what differs from the last one. */
void machine_write(const struct world *world);

/* Runs a program on a frame; *frame becomes what came out. Returns the verdict, TC_ACT_*,
 * or MACHINE_REFUSED where the kernel does not take such a frame. */
#define MACHINE_REFUSED (-1000)
int machine_run(enum hook hook, uint32_t device, uint32_t came_in_by, struct frame *frame);

/* Records, aliases, places and counts, as they are now. */
void machine_read(struct world *world);
void machine_read_fragment(struct world *world, const struct fragment_key *key);

/* Counters by hash, which no world holds. */
uint32_t machine_client_share(uint32_t place);
const struct port_share *machine_port_share(uint32_t place);

/* What the programs have counted, with tables of all sizes. */
void machine_counts(struct counters *counts);

#endif
