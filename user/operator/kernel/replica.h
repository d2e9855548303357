/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * replica.h - the programs once more, over copies of the host's maps, to run packets through.
 *
 * Neither is pinned or attached: they are gone when their files are closed. So nothing that a
 * packet would begin is left, and no real packet meets them.
 */
#ifndef OPERATOR_KERNEL_REPLICA_H
#define OPERATOR_KERNEL_REPLICA_H

#include "operator/kernel/tracing.h"

/* Begins with replica_clear(). */
struct replica {
	struct objects objects;
	struct tracing tracing;
	bool is_same;    /* the programs are those that run on this host */
	bool incomplete; /* not all entries of the maps had room, or stood still */
};

void replica_clear(struct replica *replica);
/* CNI_ERROR_KERNEL_REFUSED. */
int replica_make(struct replica *replica, const struct objects *real, struct cni_error *err);
void replica_release(struct replica *replica);

#define cleanup_replica __attribute__((cleanup(replica_release)))

/* A frame and where it is run. */
struct replica_run {
	enum program_number program;
	uint32_t ifindex;
	uint32_t in_ifindex; /* where a forwarded packet came in */
	bool verified;       /* from_container has seen it before, and that its sender is genuine */
	const uint8_t *frame;
	uint32_t length;
	/* Set by replica_run() */
	bool happened; /* false: the program passed it at once, as none of its business */
	struct trace_event event;
};

/* CNI_ERROR_KERNEL_REFUSED. */
int replica_run(struct replica *replica, struct replica_run *run, struct cni_error *err);

#endif
