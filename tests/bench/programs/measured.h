/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* measured.h - a loaded object with the programs, with containers and mappings in its maps. */
#pragma once

#include <bpf/libbpf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "abi.h"
#include "packet/host.h"

/* The owner of a packet's source or destination address */
enum side {
	PEER, /* another one for each flow */
	HOST,
	CONTAINER, /* masqueraded, with a mapped port, behind VETH_ONE */
	QUIET,     /* neither, behind VETH_QUIET */
	ELSEWHERE, /* where forwarded packets go */
};

/* The kind of the flows */
enum population {
	MAPPINGS,
	MASQUERADES,
	FAST_MAPPINGS, /* they skip the IP stack */
	FAST_MASQUERADES,
	FAST_SENT, /* packets of FAST_MAPPINGS that have skipped it */
	NO_FLOWS,
	NEW_MAPPINGS, /* each packet begins one, and the table evicts another */
	NEW_MASQUERADES,
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

enum crowd {
	NO_CROWD,
	CROWD_ENDED, /* a thousand more containers with ten thousand mappings; all else has ended */
	CROWD_AT_PORTS, /* and each port has masqueraded flows to other peers */
};

/* These functions end the process with a message on failure. */
struct bpf_object *measured_load(const char *path, const struct world *world, enum crowd crowd);
/* A variable of the loaded programs, mapped. */
void *measured_variable(const struct bpf_object *object, const char *section, const char *name);
int measured_program(const struct bpf_object *object, const char *name);
