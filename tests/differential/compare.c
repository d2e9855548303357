/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "flow.h"

#include <string.h>

/* A kernel that was not answered in time sends again: of a flow of the host's, and of its SYN-ACK
 * in another's, the same counts once. */
static bool counts(const struct step *step, const struct world *world, size_t index)
{
	const struct arrival *arrival = &world->arrivals[index];
	bool by_kernel = step->flow && (step->flow->origin == HOST ||
					(!arrival->copy && arrival->packet.flags & SYN));

	if (!arrival->text[0])
		return false;
	for (size_t i = 0; by_kernel && i < index; i++)
		if (!strcmp(arrival->text, world->arrivals[i].text))
			return false;
	return true;
}

bool compare(struct difference *difference, const struct step *step)
{
	bool paired[MAX_ARRIVALS] = {false};
	const struct world *reference = &worlds[REFERENCE], *ours = &worlds[OURS];

	memset(difference, 0, sizeof(*difference));
	difference->step = step;
	for (size_t i = 0; i < reference->count; i++) {
		size_t other = 0;

		if (!counts(step, reference, i))
			continue;
		while (other < ours->count &&
		       (paired[other] || !counts(step, ours, other) ||
			strcmp(reference->arrivals[i].text, ours->arrivals[other].text)))
			other++;
		if (other < ours->count)
			paired[other] = true;
		else
			difference->only[REFERENCE][difference->count[REFERENCE]++] =
				&reference->arrivals[i];
	}
	for (size_t i = 0; i < ours->count; i++)
		if (!paired[i] && counts(step, ours, i))
			difference->only[OURS][difference->count[OURS]++] = &ours->arrivals[i];
	return !difference->count[REFERENCE] && !difference->count[OURS];
}
