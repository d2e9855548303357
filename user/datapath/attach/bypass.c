/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bypass.c - what the fast path would walk past. */
#include "datapath/attach/bypass.h"

#include "datapath/attach/clsact.h"
#include "datapath/load/maps.h"
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

bool bypass_is_seen_by_programs(const struct datapath *datapath)
{
	struct meta meta;

	return meta_read(&datapath->objects, &meta) && meta.sees_devices;
}

static bool has_foreign_filter(struct nl_sock *socket, uint32_t ifindex)
{
	return qdisc_has_filter(socket, ifindex, true, filter_is_foreign) ||
	       qdisc_has_filter(socket, ifindex, false, filter_is_foreign);
}

static const char *find_watched(const struct datapath *datapath, struct nl_sock *socket,
				const struct link *link, bool without_filters)
{
	enum ingress_qdisc qdisc;

	if (link->queues)
		return "a qdisc";
	qdisc = without_filters ? INGRESS_QDISC_NONE : qdisc_at_ingress(socket, link->ifindex);
	if (qdisc == INGRESS_QDISC_NONE)
		return NULL;
	if (has_foreign_filter(socket, link->ifindex))
		return "a filter";
	/* Whoever made one is about to use it. */
	if (qdisc != INGRESS_QDISC_CLSACT && !bypass_is_seen_by_programs(datapath))
		return "an ingress qdisc";
	return NULL;
}

struct bypass bypass_at_link(const struct datapath *datapath, struct nl_sock *socket,
			     const struct link *link, bool without_filters)
{
	return (struct bypass){
		.program = has_foreign_tcx(datapath, link->ifindex) ? "a TCX program" : NULL,
		.watched = find_watched(datapath, socket, link, without_filters),
	};
}
