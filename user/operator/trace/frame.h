/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* frame.h - an Ethernet frame for a dry run. */
#ifndef OPERATOR_TRACE_FRAME_H
#define OPERATOR_TRACE_FRAME_H

#include <stdint.h>

#include "net/link.h"
#include "operator/trace/trace.h"

#define FRAME_MAX 128

/* One that begins a connection: SYN, a datagram, SCTP's INIT, an echo request. Returns its length.
 * SCTP's sum is not right: the programs change none. */
uint32_t frame_make(uint8_t frame[FRAME_MAX], const struct trace_packet *packet,
		    const uint8_t destination[LINK_MAC_SIZE]);

#endif
