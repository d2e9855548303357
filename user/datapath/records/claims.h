/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * claims.h - what an attachment asks for, as entries of the maps that nobody owns yet: ADD writes
 * them, CHECK compares them. The first half is filled by container_read(), the second by
 * container_claim_veth(), when the plan is made.
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
	struct workload workload;
	const struct port_claim *ports; /* sorted by key, each key once */
	size_t port_count;
	struct endpoint_claim *endpoints;
	size_t endpoint_count;
	const struct policy *policy; /* with {0, 0} as owner */

	uint32_t ifindex;           /* of the veth's end on the host */
	struct interface interface; /* the veth's entry; the owner is filled in */
	enum fast_path fast_path;
	int netns_id; /* as slots have it, and the next one */
	uint8_t host_mac[6], container_mac[6];
	uint8_t bridge_entry_mac[6]; /* zeros: the veth is no bridge's port (net/bridge_entry.h) */
};
