/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* marked.h - runs a program for a packet that brings what an earlier hook has told of it, in
 * skb->tc_index (tc_index_values.h) and skb->hash (seal.h), which BPF_PROG_TEST_RUN cannot give it.
 */
#pragma once

#include <stdint.h>

/* What the next packet brings. */
struct told {
	uint32_t tc_index;
	uint32_t hash;
	uint32_t left; /* the packet's hash before: of a second run, what the first one has left */
};

struct marked {
	int program; /* sets both and goes on as the other one */
	int array;   /* by which it does; stays open, as the kernel empties one that nobody has open
		      */
	int told;    /* a map */
};

/* 0, or -1 and errno. */
int marked_load(struct marked *marked, int program);
/* Returns the program to run for such a packet. The next call changes what that one sets. */
int marked_program(const struct marked *marked, struct told told);
/* What the last run but one has left in skb->hash. */
uint32_t marked_hash_left(const struct marked *marked);
