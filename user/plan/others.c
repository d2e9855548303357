/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* others.c - programs, filters and qdiscs of others beside ours. */
#include "plan/others.h"

#include <stdio.h>

static bool is_ours(const struct hung *hung)
{
	return hung->program != PROGRAM_COUNT;
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

const struct hung *others_ahead_of_ours(const struct hooks_look *hooks, enum hook hook)
{
	const struct hook_look *at = &hooks->hooks[hook];

	for (size_t i = 0; i < at->count; i++)
		if (is_ours(&at->list[i]))
			return others_ahead(hooks, hook, at->list[i].mechanism);
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

static bool has_filter_of_others(const struct hooks_look *hooks)
{
	for (int hook = 0; hook < HOOK_COUNT; hook++)
		for (size_t i = 0; i < hooks->hooks[hook].count; i++)
			if (hooks->hooks[hook].list[i].mechanism == MECHANISM_CLSACT &&
			    !is_ours(&hooks->hooks[hook].list[i]))
				return true;
	return false;
}

static bool has_tcx_of_others(const struct hooks_look *hooks)
{
	for (int hook = 0; hook < HOOK_COUNT; hook++)
		for (size_t i = 0; i < hooks->hooks[hook].count; i++)
			if (hooks->hooks[hook].list[i].mechanism == MECHANISM_TCX &&
			    !is_ours(&hooks->hooks[hook].list[i]))
				return true;
	return false;
}

/* NULL: nothing. */
static const char *find_watched(const struct look *look, const struct interface_look *interface)
{
	if (interface->link.queues)
		return "a qdisc";
	if (has_filter_of_others(&interface->hooks))
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
	if (has_tcx_of_others(&interface->hooks)) {
		what = "a TCX program";
		bar->program = true;
	}
	if (what && !*bar->what)
		snprintf(bar->what, sizeof(bar->what), "%s that is not ours is at %s", what,
			 interface->link.name);
}

void others_bar_by_policies(const struct look *look, struct bar *bar)
{
	if (!look->has_ipsec_policies)
		return;
	bar->watched = true;
	if (!*bar->what)
		snprintf(bar->what, sizeof(bar->what), "%s",
			 "the host has IPsec policies, asked about containers' own addresses only");
}
