/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* verdict.h - what is decided about a packet, and counting the reason. */
#ifndef BPF_PORTMAP_VERDICT_H
#define BPF_PORTMAP_VERDICT_H

#include "maps.h"

/* Not TC_ACT_*: a decision is not yet an action. */
enum verdict {
	VERDICT_PASS,      /* untouched */
	VERDICT_TRANSLATE, /* as the translation says */
	VERDICT_DROP,      /* counted by whoever decided it */
};

/* The only two answers of a program. UNSPEC, also after a rewrite: whatever
 * else hangs at this hook still gets to see the packet. */
#define TC_ACT_UNSPEC -1
#define TC_ACT_SHOT 2

/* What is done to packet after packet is counted without a call. */
#define count_here(reason) \
	do { \
		struct counters *mine = SINGLE(counters); \
		if (mine) \
			mine->reason++; \
	} while (0)

#define count(reason) count_at(__builtin_offsetof(struct counters, reason) / sizeof(__u64))

GLOBAL_FUNCTION int count_at(__u32 number)
{
	__u64 *mine = (__u64 *)SINGLE(counters);

	if (mine && number < sizeof(struct counters) / sizeof(*mine))
		mine[number]++;
	return 0;
}

/* A drop and its counter are one call. */
#define drop(reason) \
	({ \
		count(drop_##reason); \
		VERDICT_DROP; \
	})

/* The same of a program. */
#define shot(reason) \
	({ \
		count(drop_##reason); \
		TC_ACT_SHOT; \
	})

#endif
