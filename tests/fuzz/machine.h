/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* machine.h - the loaded programs; their maps are kept equal to a struct world. */
#pragma once

#include "wire.h"
#include "world.h"

enum hook { FROM_UPLINK, TO_UPLINK, FROM_BRIDGE, TO_CONTAINER, FROM_CONTAINER, HOOKS };

const char *machine_hook_name(enum hook hook);

/* Loads the programs once for each size of the tables. */
void machine_load(void);

/* Seconds of the programs' clock. */
uint32_t machine_now(void);

/* Writes the differences between this world and the last one to the maps. */
void machine_write(const struct world *world);

/* Runs a program on a frame; *frame becomes the output. Returns the verdict, TC_ACT_*, or
 * MACHINE_REFUSED if the kernel does not accept such a frame. */
#define MACHINE_REFUSED (-1000)
/* verified: it has from_container's seal */
int machine_run(enum hook hook, uint32_t device, uint32_t came_in_by, bool verified,
		struct frame *frame);

/* Reads records, aliases, places and counts. */
void machine_read(struct world *world);
void machine_read_fragment(struct world *world, const struct fragment_key *key);

/* Counters by hash, which are not in struct world. */
uint32_t machine_client_share(uint32_t place);
const struct port_share *machine_port_share(uint32_t place);
/* Those of all ports */
const struct external_port *machine_external_ports(void);
/* Whether the programs know that the host exchanges packets without ports with this peer. */
bool machine_has_tunnel(uint64_t seed, const struct connection_key *external);

/* The sum of the counters over all sizes of the tables. */
void machine_counts(struct counters *counts);
