/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* conntrack.h - the connections that conntrack knows in this network namespace. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/address.h"
#include "lib/error.h"

/* Ports in host byte order. */
struct conntrack_tuple {
	uint8_t source[CNI_ADDRESS_SIZE];
	uint8_t destination[CNI_ADDRESS_SIZE];
	uint16_t source_port;
	uint16_t destination_port;
	uint8_t protocol;
};

struct conntrack_entry {
	struct conntrack_tuple original; /* of the first packet, before any translation */
	struct conntrack_tuple reply;    /* of the reply that is expected */
	bool source_translated;
	bool destination_translated;
	uint8_t tcp_state; /* TCP_CONNTRACK_; 0: not TCP */
	uint32_t timeout;  /* seconds until it ends, if no packet comes */
};

/* Is called for each entry. */
typedef void (*conntrack_take)(const struct conntrack_entry *entry, void *context);

/* Calls `take` for all entries of TCP, UDP and SCTP. CNI_ERROR_IO, also where the kernel cannot
 * list them (CONFIG_NF_CT_NETLINK). */
int conntrack_read(conntrack_take take, void *context, struct cni_error *err);
