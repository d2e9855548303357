/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fast_path.c - whether a container's flows may skip the IP stack, and what bars them from that. */
#include "plan/fast_path.h"

#include <stdio.h>

#include "lib/memory.h"

enum fast_path plan_fast_path(const struct conf *conf, bool programs_see_qdiscs)
{
	return conf->may_limit_bandwidth && !programs_see_qdiscs ? FAST_PATH_OFF : conf->fast_path;
}

bool others_behind(const struct hooks_look *hooks, enum mechanism ours)
{
	const struct hook_look *at = &hooks->hooks[HOOK_INGRESS];
	bool ours_has_run = false;

	for_each (hung, at->list, at->count) {
		if (hung_is_ours(hung)) {
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

static void bar_by(const struct look *look, const struct interface_look *interface, struct bar *bar)
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

struct bar others_bar(const struct look *look, const struct interface_look *veth,
		      const struct interface_look *bridge)
{
	struct bar bar = {0};

	if (look->has_ipsec_policies) {
		bar.watched = bar.surprises = true;
		snprintf(bar.what, sizeof(bar.what),
			 "the host has IPsec policies, which see containers' own addresses only");
	}
	bar_by(look, veth, &bar);
	if (bridge)
		bar_by(look, bridge, &bar);
	return bar;
}
