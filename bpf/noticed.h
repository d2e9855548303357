/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* noticed.h - what was done at least once, and so has to be looked for. */
#ifndef BPF_PORTMAP_NOTICED_H
#define BPF_PORTMAP_NOTICED_H

#include "maps.h"

static __always_inline struct noticed *noticed_get(void)
{
	__u32 only = 0;

	return bpf_map_lookup_elem(&noticed, &only);
}

static __always_inline void noticed_mark(__u64 *ports, __u16 port)
{
	__u64 bit = 1ULL << (port & 63);

	if (!(ports[port >> 6] & bit))
		__sync_fetch_and_or(&ports[port >> 6], bit);
}

static __always_inline void noticed_mark_port(__u16 port)
{
	struct noticed *marks = noticed_get();

	if (marks)
		noticed_mark(marks->masquerade_ports, port);
}

static __always_inline void noticed_mark_local_udp(__u16 port)
{
	struct noticed *marks = noticed_get();

	if (marks)
		noticed_mark(marks->local_udp_ports, port);
}

static __always_inline void noticed_mark_local_container(__u16 port)
{
	struct noticed *marks = noticed_get();

	if (marks)
		noticed_mark(marks->local_container_ports, port);
}

/* False: socket_flows has nothing about it. */
static __always_inline bool noticed_local_container(__u16 port)
{
	struct noticed *marks = noticed_get();

	return marks && (marks->local_container_ports[port >> 6] >> (port & 63) & 1);
}

static __always_inline bool noticed_port(__u16 port)
{
	struct noticed *marks = noticed_get();

	return marks && (marks->masquerade_ports[port >> 6] >> (port & 63) & 1);
}

/* A mapping of an attachment with masqAll was used. */
static __always_inline void noticed_mark_masquerade_all(void)
{
	struct noticed *marks = noticed_get();

	if (marks && !marks->masquerade_all)
		marks->masquerade_all = 1;
}

static __always_inline bool noticed_masquerade_all(void)
{
	struct noticed *marks = noticed_get();

	return marks && marks->masquerade_all;
}

#endif
