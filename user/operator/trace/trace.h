/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * trace.h - `bpf-portmap trace`: what is shown.
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

#endif
