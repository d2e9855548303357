/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* verify.h - compares what came out with what should have. */
#ifndef BPF_PORTMAP_TESTS_VERIFY_H
#define BPF_PORTMAP_TESTS_VERIFY_H

#include "oracle.h"

struct outcome {
	int verdict;
	struct frame frame;
	/* What should have come out, as far as it is known by now. */
	struct frame expected;
};

/* NULL: all is as it must be. Fills in the choice of a port, where there was one. */
const char *verify_outcome(const struct world *world, const struct visit *visit,
			   struct expectation *expected, struct outcome *outcome);

/* The same of the connections; unsure: that none has gone that had no reason to. */
const char *verify_records(const struct world *before, const struct world *after,
			   const struct expectation *expected);

/* What must be so of the tables after each packet: every connection has its place and its alias,
 * nothing stands alone, and what is counted is what is there. */
const char *verify_tables(const struct world *before, const struct world *after);
/* The same of the counters by hash, all of them. */
const char *verify_hashed_counts(const struct world *world);

/* What is remembered of a first fragment, which the world has read again. */
const char *verify_fragment(const struct world *world, const struct expectation *expected);

/* What must be so of a packet that was sent past the IP stack. */
const char *verify_sent(const struct world *world, const struct visit *visit,
			const struct expectation *expected, const struct outcome *outcome);

/* What must be so whatever the oracle says. */
const char *verify_invariants(const struct world *world, const struct visit *visit,
			      const struct outcome *outcome);

#endif
