/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* verify.h - compares results with the expected ones; returns NULL, or what is wrong. */
#pragma once

#include "oracle.h"

struct outcome {
	int verdict;
	struct frame frame;
	/* The expected output; a chosen port is filled in later */
	struct frame expected;
};

/* Also fills in the port that the program has chosen. */
const char *verify_outcome(const struct world *world, const struct visit *visit,
			   struct expectation *expected, struct outcome *outcome);

/* The same for connections. If unsure: only that none has ended without a reason. */
const char *verify_records(const struct world *before, const struct world *after,
			   const struct expectation *expected);

/* Consistency of the tables after each packet: each connection has its place and alias, each place
 * and alias its connection, and the counts are right. */
const char *verify_tables(const struct world *before, const struct world *after);
/* The same for all counters by hash. */
const char *verify_hashed_counts(const struct world *world);

/* The record of a first fragment's datagram, after it was read again. */
const char *verify_fragment(const struct world *world, const struct expectation *expected);

/* Invariants of a packet that skipped the IP stack. */
const char *verify_sent(const struct world *world, const struct visit *visit,
			const struct expectation *expected, const struct outcome *outcome);

/* Invariants of every packet. */
const char *verify_invariants(const struct world *world, const struct visit *visit,
			      const struct outcome *outcome);
