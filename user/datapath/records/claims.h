/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * claims.h - what an attachment asks for, and the entries of the maps that come of it: ADD writes
 * them, CHECK compares them.
 */
#ifndef DATAPATH_RECORDS_CLAIMS_H
#define DATAPATH_RECORDS_CLAIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conf/conf.h"
#include "datapath/load/objects.h"

struct endpoint_claim {
	struct endpoint_key key;
	uint8_t prefix_length;
	bool masquerade;
	bool strict;
};

struct attachment_claims {
	struct attachment_key key;
	uint32_t ifindex; /* of the veth's host side */
	uint8_t host_mac[6];
	uint8_t container_mac[6]; /* zero where no bridge has to know it */
	enum fast_path fast_path;
	struct interface interface;     /* the veth's entry; the owner is filled in */
	const struct port_claim *ports; /* sorted by key, each key once */
	size_t port_count;
	const struct endpoint_claim *endpoints;
	size_t endpoint_count;
	const struct policy *policy;     /* with {0, 0} as owner */
	const struct workload *workload; /* whose container it is; for messages */
};

struct portmap claimed_portmap(const struct port_claim *claim, struct owner owner);
struct endpoint claimed_endpoint(const struct endpoint_claim *claim, struct owner owner);
/* Not live, and without the gateway's MAC, which only the maps know. */
struct slot claimed_slot(const struct attachment_claims *claims, struct owner owner);
/* While it is being added; `since` is now. */
struct attachment claimed_record(const struct attachment_claims *claims);

#endif
