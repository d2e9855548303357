/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bypass.c - what the fast path would walk past. */
#include "datapath/bypass.h"

#include "datapath/clsact.h"
#include "net/qdisc.h"

static bool is_ours(const struct datapath *datapath, uint32_t id)
{
	for (int program = 0; program < PROGRAM_COUNT; program++)
		if (datapath->objects.program_ids[program] == id)
			return true;
	return program_by_id(id) != PROGRAM_COUNT;
}

static bool filter_is_foreign(const struct filter *filter)
{
	return filter->priority != FILTER_PRIORITY ||
	       (filter->handle && filter->handle != FILTER_HANDLE);
}

static bool filter_is_behind_ours(const struct filter *filter)
{
	return filter->priority >= FILTER_PRIORITY && filter_is_foreign(filter);
}

/* TCX programs run before all filters. */
bool bypass_at_ingress(const struct datapath *datapath, struct nl_sock *socket, uint32_t ifindex)
{
	uint32_t ids[TCX_PROGRAMS];
	bool behind = false;
	size_t count;

	if (tcx_list(ifindex, HOOK_INGRESS, ids, &count))
		count = 0;
	for (size_t i = 0; i < count; i++) {
		if (is_ours(datapath, ids[i]))
			behind = true;
		else if (behind)
			return true;
	}
	return qdisc_has_filter(socket, ifindex, true,
				behind ? filter_is_foreign : filter_is_behind_ours);
}

static bool has_foreign_tcx(const struct datapath *datapath, uint32_t ifindex)
{
	uint32_t ids[TCX_PROGRAMS];
	size_t count;

	for (int hook = 0; hook < HOOK_COUNT; hook++) {
		if (tcx_list(ifindex, hook, ids, &count))
			return false;
		for (size_t i = 0; i < count; i++)
			if (!is_ours(datapath, ids[i]))
				return true;
	}
	return false;
}

const char *bypass_at_link(const struct datapath *datapath, struct nl_sock *socket,
			   const struct link *link, bool without_filters)
{
	if (link->queues)
		return "a qdisc";
	if (has_foreign_tcx(datapath, link->ifindex))
		return "a TCX program";
	if (without_filters)
		return NULL;
	switch (qdisc_at_ingress(socket, link->ifindex)) {
	case INGRESS_QDISC_NONE:
		return NULL;
	case INGRESS_QDISC_CLSACT:
		break;
	default:
		return "an ingress qdisc";
	}
	if (qdisc_has_filter(socket, link->ifindex, true, filter_is_foreign) ||
	    qdisc_has_filter(socket, link->ifindex, false, filter_is_foreign))
		return "a filter";
	return NULL;
}
