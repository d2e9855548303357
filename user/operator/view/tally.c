/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tally.c - counts by two words. */
#include "operator/view/tally.h"

#include <stdlib.h>
#include <string.h>

#include "lib/array.h"

/* Neighbours in a walk are mostly of the network that came last. */
static struct tally_entry *find(const struct tally *tally, const char *network, const char *word)
{
	for (size_t i = tally->count; i--;)
		if (!strcmp(tally->entries[i].word, word) &&
		    !strcmp(tally->entries[i].network, network))
			return &tally->entries[i];
	return NULL;
}

void tally_add(struct tally *tally, const char *network, const char *word)
{
	struct tally_entry *entry = find(tally, network, word);

	if (!entry) {
		entry = ARRAY_ADD(tally->entries, tally->count);
		*entry = (struct tally_entry){need(strdup(network)), word, 0};
	}
	entry->count++;
}

void tally_release(struct tally *tally)
{
	for (size_t i = 0; i < tally->count; i++)
		free(tally->entries[i].network);
	free(tally->entries);
	*tally = (struct tally){0};
}
