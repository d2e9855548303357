/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * scratch.h - room that the stack has not: 512 bytes are all that functions that call each other
 * have together.
 *
 * Programs at tc are not interrupted by others of this CPU. Before Linux 6.2 no helper takes a key
 * that a global function was passed a pointer to, but one that lies in a map it takes.
 */
#ifndef BPF_PORTMAP_SCRATCH_H
#define BPF_PORTMAP_SCRATCH_H

#include "packet.h"

/* Which ports a masqueraded connection may have, in which order (port_choice.h) */
struct port_order {
	__u64 start;         /* the connection's own number */
	__u32 number : 31;   /* of ports in the set */
	__u32 keeps_own : 1; /* the container's own port may be kept */
	__u16 own;
	__u16 next;      /* place to try */
	__u16 places;    /* so many are tried */
	bool share_used; /* its owner has as many as are left: only what is given up */
};

/* A connection in the making, and its alias, if it is to have one. */
struct draft {
	struct connection_key key;
	struct connection_key external;
	struct alias alias;
	struct connection connection;
};

struct scratch {
	struct draft draft;
	struct connection_key found; /* of the packet's connection */
	struct connection_key other; /* of another one that is looked at */
	struct connection_key ended; /* of the one that connection_end() ends */
	struct connection_key ended_external;
	struct port_order order; /* of ports for the draft */
	struct tuple reply;      /* that the draft's port would get */
	struct bpf_fib_lookup query;
	struct translation translation; /* of a container's packet */
};

ARRAY_OF(scratch, BPF_MAP_TYPE_PERCPU_ARRAY, struct scratch, 1);

INLINE struct scratch *scratch_get(void)
{
	return SINGLE(scratch);
}

INLINE struct draft *draft_get(void)
{
	struct scratch *scratch = scratch_get();

	return scratch ? &scratch->draft : NULL;
}

#endif
