/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* trace_note.h - notes what is counted for a packet that is being traced (trace_packet.h). */
#ifndef BPF_PORTMAP_TRACE_NOTE_H
#define BPF_PORTMAP_TRACE_NOTE_H

#include "packet.h"
#include "trace_event.h"

/* What user space writes. A variable: to read it needs no look-up. */
volatile struct trace_settings trace_settings SEC(TRACE_SETTINGS) = {.version = TRACE_VERSION};

/* The event that is being made */
struct trace_state {
	struct trace_event event;
	struct packet packet;
	enum packet_kind kind;
	bool begun;
	bool is_told; /* its event was sent */
};

ARRAY_OF(trace_state, BPF_MAP_TYPE_PERCPU_ARRAY, struct trace_state, 1);

INLINE bool trace_is_on(void)
{
	return trace_settings.until;
}

INLINE void trace_note(__u32 number)
{
	if (trace_is_on())
		SINGLE(trace_state)->event.counted |= 1ULL << (number & 63);
}

#endif
