/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* events.c - what others do at the host while packets are on their way. */
#include "flow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const rules[] = {
	"nodeport",           "nodeport_fixed",    "nodeport_range",
	"masquerade_all",     "masquerade_subnet", "masquerade_leaving",
	"masquerade_not_net", "masquerade_bridge", "masquerade_fixed",
	"redirect",           "snat_client",       "snat_container",
	"dnat_container",     "service",           "service_hairpin",
};

#define RULES (sizeof(rules) / sizeof(*rules))

static bool present[RULES], second_address, other_route;

void events_forget(void)
{
	memset(present, 0, sizeof(present));
	second_address = other_route = false;
}

bool fast_path_is_on(void)
{
	const char *mode = getenv("FAST_PATH");

	return !mode || strcmp(mode, "off");
}

bool events_second_address(void)
{
	return second_address;
}

static bool run(struct step *step, const char *verb, const char *object)
{
	snprintf(step->text, STEP_TEXT, "%s %s", verb, object);
	return worlds_command(step->text);
}

/* Few rules at a time, or the first of them decides everything */
static bool change_rule(struct step *step)
{
	unsigned rule = random_below(RULES);
	bool add = random_chance(45);

	if (present[rule] == add)
		return true;
	present[rule] = add;
	return run(step, add ? "rule_add" : "rule_delete", rules[rule]);
}

/* Its flows end: their addresses are another's, or nobody's. */
static bool replace(struct step *step)
{
	enum end end = WEB + random_below(ENDS - WEB);

	for (int i = 0; i < FLOWS; i++) {
		if (flows[i].origin == end)
			flows[i].used = false;
		for (int which = 0; which < WORLDS; which++) {
			struct view *view = &flows[i].views[which];

			if (!view->arrived || view->at != end)
				continue;
			view->arrived = false;
			/* Ours ends it, so that its process learns of it. */
			if (view->connected)
				flows[i].quarantined = true;
		}
	}
	return run(step, "container_replace", end_names[end]);
}

bool event_make(struct step *step)
{
	switch (random_below(20)) {
	case 0:
		return replace(step);
	case 1:
	case 2:
		return run(step, "bridge_netfilter_set", random_chance(50) ? "1" : "0");
	case 3:
		second_address = !second_address;
		return run(step, second_address ? "address_add" : "address_delete", "");
	case 4:
		return run(step, "reverse_path", random_chance(50) ? "1" : "2");
	case 5:
		/* What skips the stack leaves by the old route for a second. */
		if (fast_path_is_on())
			return true;
		other_route = !other_route;
		return run(step, other_route ? "route_add" : "route_delete", "");
	default:
		return change_rule(step);
	}
}
