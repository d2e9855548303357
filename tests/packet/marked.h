/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* marked.h - a packet that brings a value of skb->tc_index from an earlier hook, which
 * BPF_PROG_TEST_RUN cannot give it. */
#ifndef BPF_PORTMAP_TESTS_MARKED_H
#define BPF_PORTMAP_TESTS_MARKED_H

/* Loads a program that sets tc_index and goes on as the given one. Returns its file descriptor. */
int marked_program(int program, unsigned int tc_index);

#endif
