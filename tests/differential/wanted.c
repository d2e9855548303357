/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* wanted.c - the differences that we want, each with its reason. */
#include "flow.h"

#include <string.h>

/* Only these worlds have seen something, and each of it passes. */
static bool all(const struct difference *difference, enum which_world which,
		bool (*passes)(const struct difference *, const struct arrival *))
{
	for (size_t i = 0; i < difference->count[which]; i++)
		if (!passes(difference, difference->only[which][i]))
			return false;
	return true;
}

static bool is_hosts_refusal(const struct difference *difference, const struct arrival *arrival)
{
	return !arrival->copy && (arrival->packet.flags & RST || is_icmp_error(&arrival->packet));
}

static bool is_untranslated(const struct difference *difference, const struct arrival *arrival)
{
	return arrival->copy && same_address(&arrival->packet.source,
					     &difference->step->sent[REFERENCE].source);
}

static bool is_copy(const struct difference *difference, const struct arrival *arrival)
{
	return arrival->copy;
}

/* Neighbours' and groups' messages of IPv6 count as INVALID, too. */
static bool may_be_invalid(const struct step *step)
{
	return step->invalid && step->flow &&
	       (step->error || step->flow->first.protocol != IPPROTO_UDP);
}

static bool is_served(const struct difference *difference)
{
	return difference->step->unserved && difference->step->forward &&
	       all(difference, OURS, is_copy) && all(difference, REFERENCE, is_hosts_refusal);
}

static bool is_invalid(const struct difference *difference)
{
	return may_be_invalid(difference->step) && all(difference, OURS, is_copy) &&
	       all(difference, REFERENCE, is_hosts_refusal);
}

static bool is_let_out(const struct difference *difference)
{
	return may_be_invalid(difference->step) && all(difference, REFERENCE, is_untranslated);
}

static bool is_forged(const struct difference *difference)
{
	return difference->step->flow && difference->step->flow->forged && !difference->count[OURS];
}

struct entry {
	bool (*is)(const struct difference *difference);
	const char *why;
};

static const struct entry list[] = {
	{is_forged, "forged sources end at our programs"},
	{is_served, "conntrack's entry without translation takes nothing from a container"},
	{is_invalid, "what conntrack calls INVALID the host refuses, ours delivers"},
	{is_let_out, "what conntrack calls INVALID netfilter lets out untranslated"},
};

const char *wanted(const struct difference *difference)
{
	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++)
		if (list[i].is(difference))
			return list[i].why;
	return NULL;
}
