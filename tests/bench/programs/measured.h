/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* measured.h - an object with the programs, loaded, and its containers and mappings. */
#ifndef BPF_PORTMAP_TESTS_MEASURED_H
#define BPF_PORTMAP_TESTS_MEASURED_H

#include <bpf/libbpf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "abi.h"
#include "packet/host.h"

/* Whose address a packet has as source or destination. */
enum side {
	PEER, /* every flow's own */
	HOST,
	CONTAINER, /* masqueraded, with a mapped port, behind VETH_ONE */
	QUIET,     /* neither, behind VETH_QUIET */
	ELSEWHERE, /* where forwarded packets go */
};

/* What the flows are. */
enum population {
	MAPPINGS,
	MASQUERADES,
	FAST_MAPPINGS, /* they skip the IP stack */
	FAST_MASQUERADES,
	FAST_SENT, /* as FAST_MAPPINGS: packets that have skipped it */
	NO_FLOWS,
};

struct world {
	enum population population;
	bool ipv6;
	bool udp;
	uint32_t flows;
};

const char *side_address(enum side side, bool ipv6);
int side_port(enum side side, const struct world *world);

bool world_is_fast(const struct world *world);

/* These end the process with a message where something fails. crowded: with a thousand more
 * containers, and ten thousand more mappings. */
struct bpf_object *measured_load(const char *path, const struct world *world, bool crowded);
/* A variable of the programs as it is now. It stays mapped. */
void *measured_variable(const struct bpf_object *object, const char *section, const char *name);
int measured_program(const struct bpf_object *object, const char *name);

#endif
