/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tally.h - counts by two words.
 */
#ifndef OPERATOR_VIEW_TALLY_H
#define OPERATOR_VIEW_TALLY_H

#include <stddef.h>
#include <stdint.h>

struct tally_entry {
	char *network;
	const char *word; /* "tcp"; not copied */
	uint64_t count;
};

/* Begins as {0}. */
struct tally {
	struct tally_entry *entries;
	size_t count;
};

void tally_add(struct tally *tally, const char *network, const char *word);
void tally_release(struct tally *tally);

#endif
