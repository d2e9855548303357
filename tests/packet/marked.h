/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* marked.h - runs a program for a packet that brings what an earlier hook has told of it, in
 * skb->tc_index (tc_index_values.h), which BPF_PROG_TEST_RUN cannot give it. */
#pragma once

#include <stdint.h>

struct marked {
	int program; /* sets tc_index and goes on as the other one */
	int array;   /* by which it does; stays open, as the kernel empties one that nobody has open
		      */
};

/* 0, or -1 and errno. Close it after success. */
int marked_load(struct marked *marked, int program, uint16_t tc_index);
void marked_close(const struct marked *marked);
