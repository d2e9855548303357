/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* others.c - programs, filters and qdiscs of others beside ours. */
#include "plan/others.h"

#include <stdio.h>

static bool is_ours(const struct hung *hung)
{
	return hung->program != PROGRAM_COUNT;
}

bool others_hang(const struct hook_look *hook, enum mechanism mechanism)
{
	for (size_t i = 0; i < hook->count; i++)
		if (hook->list[i].mechanism == mechanism && !is_ours(&hook->list[i]))
			return true;
	return false;
}

/* The bandwidth plugin's filter: what it redirects meets from_container at the other device. */
static bool leads_to_ours(const struct hooks_look *hooks, enum hook hook, const struct hung *hung)
{
	return hook == HOOK_INGRESS && !hung->id && hooks->shaper;
}

const struct hung *others_ahead(const struct hooks_look *hooks, enum hook hook, enum mechanism ours)
{
	const struct hook_look *at = &hooks->hooks[hook];

	for (size_t i = 0; i < at->count; i++) {
		const struct hung *hung = &at->list[i];

		if (is_ours(hung) && hung->mechanism == ours)
			return NULL;
		if (is_ours(hung) || hung->is_announcement)
			continue;
		if (hung->mechanism == MECHANISM_TCX)
			return hung;
		if (ours == MECHANISM_TCX || hung->priority >= FILTER_PRIORITY)
			return NULL;
		return leads_to_ours(hooks, hook, hung) ? NULL : hung;
	}
	return NULL;
}

bool others_behind(const struct hooks_look *hooks, enum mechanism ours)
{
	const struct hook_look *at = &hooks->hooks[HOOK_INGRESS];
	bool ours_has_run = false;

	for (size_t i = 0; i < at->count; i++) {
		const struct hung *hung = &at->list[i];

		if (is_ours(hung)) {
			ours_has_run |= hung->mechanism == ours;
			continue;
		}
		if (hung->mechanism == MECHANISM_TCX
			    ? ours == MECHANISM_TCX && ours_has_run
			    : ours == MECHANISM_TCX || hung->priority >= FILTER_PRIORITY)
			return true;
	}
	return false;
}

static bool has_others(const struct hooks_look *hooks, enum mechanism mechanism)
{
	for (int hook = 0; hook < HOOK_COUNT; hook++)
		if (others_hang(&hooks->hooks[hook], mechanism))
			return true;
	return false;
}

/* NULL: nothing. */
static const char *find_watched(const struct look *look, const struct interface_look *interface)
{
	if (interface->link.queues)
		return "a qdisc";
	if (has_others(&interface->hooks, MECHANISM_CLSACT))
		return "a filter";
	/* A process that has made one is about to use it. */
	return interface->hooks.qdisc > INGRESS_QDISC_CLSACT && !look->programs_see_qdiscs
		       ? "an ingress qdisc"
		       : NULL;
}

void others_bar(const struct look *look, const struct interface_look *interface, struct bar *bar)
{
	const char *what = find_watched(look, interface);

	bar->watched |= what != NULL;
	/* What queues packets, and the bandwidth plugin's filter that takes them there, are limits.
	 */
	bar->surprises |= what && !interface->link.queues && !interface->hooks.shaper;
	if (has_others(&interface->hooks, MECHANISM_TCX)) {
		what = "a TCX program";
		bar->program = bar->surprises = true;
	}
	if (what && !*bar->what)
		snprintf(bar->what, sizeof(bar->what), "%s that is not ours is at %s", what,
			 interface->link.name);
}

void others_bar_by_policies(const struct look *look, struct bar *bar)
{
	if (!look->has_ipsec_policies)
		return;
	bar->watched = bar->surprises = true;
	if (!*bar->what)
		snprintf(bar->what, sizeof(bar->what), "%s",
			 "the host has IPsec policies, which see containers' own addresses only");
}
