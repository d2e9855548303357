/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tracing.h - asks loaded programs to tell what they do with packets (include/trace_event.h), and
 * reads what they tell; and puts the programs into the kernel that only the tool needs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "datapath/load/objects.h"
#include "lib/error.h"
#include "trace_event.h"

/* What a program, or the one at the tracepoint, has told. */
struct told {
	uint32_t cpu;
	union {
		struct trace_event event; /* any hook but TRACE_KERNEL */
		struct trace_drop drop;
	};
};

/* Begins with tracing_clear(). */
struct tracing {
	uint32_t program; /* the kernel's id of one that is asked */
	int settings;     /* file descriptors of maps */
	int events;
	struct perf_buffer *buffer;
	struct told *told; /* what was read last, in the order of time */
	size_t count;
	size_t held;   /* behind these, for the next time */
	uint64_t lost; /* events for which there was no room */
};

/* Waits, at most so long, until nobody else reads: a second reader would get all events, and the
 * first one none. Returns a file to close, or -1: CNI_ERROR_TRY_AGAIN, CNI_ERROR_KERNEL_REFUSED. */
int tracing_lock(const char *directory, int seconds, struct cni_error *err);

void tracing_clear(struct tracing *tracing);

/* Finds the maps of the programs, and makes the buffers. CNI_ERROR_KERNEL_REFUSED, also where the
 * programs are of another version. */
int tracing_open(struct tracing *tracing, const struct objects *objects, struct cni_error *err);
void tracing_close(struct tracing *tracing);

/* Returns whether other programs are pinned in the directory by now, which tell nothing to this
 * reader. Where none is pinned the old ones run on. */
bool tracing_is_outdated(const struct tracing *tracing, const char *directory);

/* Lets the programs tell for the next seconds; 0: no more. CNI_ERROR_KERNEL_REFUSED. */
int tracing_ask(struct tracing *tracing, const struct trace_filter *filter, uint32_t seconds,
		struct cni_error *err);

/* Waits for at most so long, and reads what was told until then into tracing->told, in the place of
 * what was there: what a packet met comes in its order, whichever CPUs have told it. */
int tracing_read(struct tracing *tracing, int milliseconds, struct cni_error *err);

/* Loads the program that tells which packets the kernel drops, while the other programs are asked
 * to tell, and attaches it to the tracepoint for as long as the file descriptor that it returns is
 * open. *has_reason: whether the kernel tells why (since 5.17). -1: CNI_ERROR_KERNEL_REFUSED, also
 * where it has no BTF. */
int programs_attach_drops(const struct objects *objects, const struct tracing *tracing,
			  const struct trace_filter *filter, bool *has_reason,
			  struct cni_error *err);

/* Loads the program that records connections which conntrack translates (bpf/adopt.bpf.c) over the
 * maps in `objects`, which are all open. Returns its file descriptor. -1: CNI_ERROR_KERNEL_REFUSED,
 * the verifier's last words in the details. */
int programs_load_adopt(const struct objects *objects, struct cni_error *err);
