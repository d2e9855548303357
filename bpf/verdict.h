/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* verdict.h - decisions about packets, and counters of their reasons. */
#pragma once

#include "maps.h"

/* Programs that are not traced have no trace_note.h. */
#ifndef BPF_PORTMAP_TRACE_NOTE_H
#define trace_note(number)
#endif

/* Not TC_ACT_*: a decision is not yet an action. */
enum verdict {
	VERDICT_PASS,      /* untouched */
	VERDICT_TRANSLATE, /* as the translation says */
	VERDICT_DROP,      /* counted where it was decided */
};

/* What tc programs return, besides redirects. UNSPEC, even after a rewrite, so that other
 * programs at this hook see the packet too. */
#define TC_ACT_UNSPEC -1
#define TC_ACT_SHOT 2

#define BPF_F_INGRESS 1 /* redirect into the interface, not out of it */

/* Inline, for counters of nearly every packet. */
#define count_here(reason) (SINGLE(counters)->reason++)

#define count(reason) count_at(__builtin_offsetof(struct counters, reason) / sizeof(__u64))

GLOBAL_FUNCTION int count_at(__u32 number)
{
	__u64 *mine = (__u64 *)SINGLE(counters);

	if (number < sizeof(struct counters) / sizeof(*mine))
		mine[number]++;
	trace_note(number);
	return 0;
}

/* Counts a drop; evaluates to the verdict. */
#define drop(reason) \
	({ \
		count(drop_##reason); \
		VERDICT_DROP; \
	})

/* The same as a program's return value. */
#define shot(reason) \
	({ \
		count(drop_##reason); \
		TC_ACT_SHOT; \
	})
