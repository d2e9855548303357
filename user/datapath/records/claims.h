/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * claims.h - what an attachment asks for, as entries of the maps that nobody owns yet: ADD writes
 * them, CHECK compares them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conf/conf.h"
#include "datapath/load/objects.h"

struct endpoint_claim {
	struct endpoint_key key;
	struct endpoint endpoint;
};

struct attachment_claims {
	struct attachment_key key;
	uint64_t container; /* as slots have it */
	struct attachment record;
	enum fast_path fast_path;
	int netns_id; /* as slots have it, and the next one */
	uint8_t container_mac[6];
	struct interface interface;     /* the veth's entry; the owner is filled in */
	const struct port_claim *ports; /* sorted by key, each key once */
	size_t port_count;
	struct endpoint_claim *endpoints;
	size_t endpoint_count;
	const struct policy *policy; /* with {0, 0} as owner */
};
