/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* foreign_tc.c - other people's tc and TCX programs, filters and qdiscs beside ours. */
#include "datapath/attach/foreign_tc.h"

#include <bpf/bpf.h>
#include <stdio.h>
#include <string.h>

#include "lib/cleanup.h"
#include "datapath/load/maps.h"
#include "net/tc.h"

/* TCX programs run before all filters. */
struct tcx_programs {
	bool ours;       /* one of ours is among them */
	uint32_t before; /* the first of others that runs before it; 0: none */
	uint32_t behind; /* the first of others that runs behind it; 0: none */
};

static struct tcx_programs look_at_tcx(uint32_t ifindex, enum hook hook)
{
	struct tcx_programs found = {0};
	uint32_t ids[TCX_PROGRAMS];
	size_t count;

	if (tcx_list(ifindex, hook, ids, &count))
		return found;
	for (size_t i = 0; i < count; i++) {
		if (program_by_id(ids[i]) != PROGRAM_COUNT)
			found.ours = true;
		else if (!found.ours && !found.before)
			found.before = ids[i];
		else if (found.ours && !found.behind)
			found.behind = ids[i];
	}
	return found;
}

static void describe_program(uint32_t id, const char *what, char text[FOREIGN_TC_SIZE])
{
	cleanup_close int fd = bpf_prog_get_fd_by_id(id);
	struct bpf_prog_info info;
	uint32_t size = sizeof(info);

	memset(&info, 0, sizeof(info));
	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &size) || !info.name[0])
		snprintf(text, FOREIGN_TC_SIZE, "the %s with id %u", what, id);
	else
		snprintf(text, FOREIGN_TC_SIZE, "the %s %.16s (id %u)", what, info.name, id);
}

static bool filter_is_ahead(const struct filter *filter)
{
	return filter->priority < FILTER_PRIORITY && filter->handle;
}

bool foreign_tc_ahead(uint32_t ifindex, enum hook hook, bool without_filters,
		      char text[FOREIGN_TC_SIZE])
{
	struct tcx_programs tcx = look_at_tcx(ifindex, hook);
	struct filter filter;

	if (tcx.before) {
		describe_program(tcx.before, "TCX program", text);
		return true;
	}
	if (tcx.ours || without_filters ||
	    !filter_find(ifindex, hook == HOOK_INGRESS, filter_is_ahead, &filter))
		return false;
	/* The bandwidth plugin's filter: what it redirects meets from_container at the other
	 * device. */
	if (hook == HOOK_INGRESS && !filter.program) {
		uint32_t shaper = clsact_find_redirect(ifindex);

		if (shaper && shaper_program(shaper))
			return false;
	}
	if (filter.program)
		describe_program(filter.program, "tc program", text);
	else
		snprintf(text, FOREIGN_TC_SIZE, "a tc filter (%s, priority %u)", filter.kind,
			 filter.priority);
	return true;
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

bool foreign_tc_behind(uint32_t ifindex)
{
	struct tcx_programs tcx = look_at_tcx(ifindex, HOOK_INGRESS);

	return tcx.behind ||
	       filter_find(ifindex, true, tcx.ours ? filter_is_foreign : filter_is_behind_ours,
			   NULL);
}

bool foreign_tc_is_seen_by_programs(const struct datapath *datapath)
{
	struct meta meta;

	return meta_read(&datapath->objects, &meta) && meta.sees_devices;
}

/* NULL: nothing. */
static const char *find_watched(const struct datapath *datapath, const struct link *link,
				bool without_filters)
{
	enum ingress_qdisc qdisc;

	if (link->queues)
		return "a qdisc";
	qdisc = without_filters ? INGRESS_QDISC_NONE : qdisc_at_ingress(link->ifindex);
	if (qdisc == INGRESS_QDISC_NONE)
		return NULL;
	if (filter_find(link->ifindex, true, filter_is_foreign, NULL) ||
	    filter_find(link->ifindex, false, filter_is_foreign, NULL))
		return "a filter";
	/* A process that has made one is about to use it. */
	return qdisc != INGRESS_QDISC_CLSACT && !foreign_tc_is_seen_by_programs(datapath)
		       ? "an ingress qdisc"
		       : NULL;
}

void foreign_tc_look(const struct datapath *datapath, const struct link *link, bool without_filters,
		     struct foreign_tc *found)
{
	const char *what = find_watched(datapath, link, without_filters);

	found->watched |= what != NULL;
	for (int hook = 0; hook < HOOK_COUNT; hook++) {
		struct tcx_programs tcx = look_at_tcx(link->ifindex, hook);

		if (!tcx.before && !tcx.behind)
			continue;
		what = "a TCX program";
		found->program = true;
	}
	if (what && !*found->what)
		snprintf(found->what, sizeof(found->what), "%s that is not ours is at %s", what,
			 link->name);
}
