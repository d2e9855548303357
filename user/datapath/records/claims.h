/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * claims.h - what an attachment asks for.
 */
#ifndef DATAPATH_RECORDS_CLAIMS_H
#define DATAPATH_RECORDS_CLAIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/error.h"
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
	enum fast_path fast_path;
	struct interface interface;     /* the veth's entry; the owner is filled in */
	const struct port_claim *ports; /* sorted by key, each key once */
	size_t port_count;
	const struct endpoint_claim *endpoints;
	size_t endpoint_count;
	const struct policy *policy;     /* names no owner */
	const struct workload *workload; /* whose container it is; for messages */
};

/* Finds where the container's frames to its gateway go, as slots have it: to the bridge, or to the
 * veth's own end. The first command that sees that a bridge's MAC has changed writes it to all
 * entries, under the lock. */
void claims_find_gateway(const struct objects *objects, const struct attachment_claims *claims,
			 uint8_t mac[6]);

/* Marks the ports and addresses of all claims in the bitmaps by which programs know most ports and
 * addresses that no mapping or endpoint has. Call it with the lock, before any of the claims is
 * written to portmaps or endpoints. CNI_ERROR_KERNEL_REFUSED. */
int claims_mark(const struct objects *objects, const struct attachment_claims *claims,
		struct cni_error *err);

#endif
