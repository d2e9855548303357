/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * trace.h - `bpf-portmap trace`: its two halves.
 */
#ifndef OPERATOR_TRACE_TRACE_H
#define OPERATOR_TRACE_TRACE_H

#include "lib/address.h"
#include "operator/options.h"
#include "operator/view/view.h"

/* What the packets that are shown have. */
struct live_wish {
	uint8_t host[CNI_ADDRESS_SIZE]; /* all zero: any */
	struct port_option port;
};

/* Shows packets as the programs meet them, until --count or --seconds are over, or a signal. */
int trace_live(const struct options *options, const struct live_wish *wish, struct view *view,
	       struct cni_error *err);

/* The packet of a dry run. */
struct trace_packet {
	enum protocol protocol;
	uint8_t source[CNI_ADDRESS_SIZE];
	uint8_t destination[CNI_ADDRESS_SIZE];
	uint16_t source_port;
	uint16_t destination_port;
	bool is_reset; /* of TCP: ends what the same packet without this has begun */
};

/* Runs a packet through copies of the programs and maps, and tells the story. */
int trace_dry_run(const struct options *options, const struct trace_packet *packet,
		  struct view *view, struct cni_error *err);

#endif
