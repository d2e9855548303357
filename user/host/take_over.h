/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * take_over.h - from the maps of an older release to ours, while packets pass.
 *
 * Maps that have the same shape are kept. The others are made anew and filled: first the records,
 * then the connections. Then the programs are replaced at their hooks, each at once. Until the last
 * one is, old programs and new ones work side by side on maps of their own, so a connection must
 * not begin at one and be unknown to the other, which would leave its packets untranslated or give
 * it another port. The new programs therefore drop what belongs to no connection (`taking_over` in
 * struct meta), and those at egress, where sources are translated, are replaced first: behind them
 * no masqueraded connection can begin at an old program. What began before is read then, and
 * the programs at ingress are replaced. At last the connections are read once more, for those
 * that old programs at ingress began and could not complete. Connections that were there before go
 * on all the time: both sides translate them alike.
 *
 * Killed anywhere, the next run goes on: before the first hook from the old maps, afterwards with
 * the new maps, which it finds by the programs. The old maps are only read, and are unpinned when
 * nothing is missing.
 */
#ifndef HOST_TAKE_OVER_H
#define HOST_TAKE_OVER_H

#include "datapath/layouts/layouts.h"
#include "datapath/load/datapath.h"

/* What was taken over. */
struct take_over_report {
	uint32_t from_layout;         /* 0: nothing was */
	uint32_t connections, failed; /* those that had room in the new table or not */
	double waited;                /* seconds in which no connection could begin */
};

/* Opens the older set that is pinned where the datapath is to be, with the lock. Close it also
 * after a failure. CNI_ERROR_KERNEL_REFUSED, CNI_ERROR_TRY_AGAIN. */
int take_over_begin(struct older_set *set, const struct datapath *datapath, struct cni_error *err);

/* All but the pins. The datapath is loaded, and its meta has `taking_over`.
 * CNI_ERROR_KERNEL_REFUSED, CNI_ERROR_TRY_AGAIN. */
int take_over_run(const struct older_set *set, const struct datapath *datapath,
		  struct take_over_report *report, struct cni_error *err);

#endif
