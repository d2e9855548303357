/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ahead.c - other people's programs that run before ours. */
#include "datapath/attach/ahead.h"

#include <bpf/bpf.h>
#include <stdio.h>
#include <string.h>

#include "lib/cleanup.h"
#include "datapath/attach/clsact.h"
#include "datapath/load/objects.h"
#include "datapath/attach/shaper.h"
#include "net/qdisc.h"

static void describe_program(uint32_t id, const char *what, char text[AHEAD_SIZE])
{
	cleanup_close int fd = bpf_prog_get_fd_by_id(id);
	struct bpf_prog_info info;
	uint32_t size = sizeof(info);

	memset(&info, 0, sizeof(info));
	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &size) || !info.name[0])
		snprintf(text, AHEAD_SIZE, "the %s with id %u", what, id);
	else
		snprintf(text, AHEAD_SIZE, "the %s %.16s (id %u)", what, info.name, id);
}

static bool is_ahead(const struct filter *filter)
{
	return filter->priority < FILTER_PRIORITY && filter->handle;
}

/* The first program that is not ours and runs before it; 0: none. *ours: ours is at this hook. */
static uint32_t find_tcx_program(uint32_t ifindex, enum hook hook, bool *ours)
{
	uint32_t ids[TCX_PROGRAMS], first = 0;
	size_t count;

	*ours = false;
	if (tcx_list(ifindex, hook, ids, &count))
		count = 0;
	for (size_t i = 0; i < count && !*ours; i++) {
		*ours = program_by_id(ids[i]) != PROGRAM_COUNT;
		if (!*ours && !first)
			first = ids[i];
	}
	return first;
}

/* The bandwidth plugin's filter: what it redirects meets from_container at the other device. */
static bool leads_to_ours(uint32_t ifindex, enum hook hook, const struct filter *filter)
{
	uint32_t shaper = 0;

	if (hook == HOOK_INGRESS && !filter->program)
		shaper = clsact_find_redirect(ifindex);
	return shaper && shaper_program(shaper);
}

/* TCX programs run before all filters. */
bool ahead_find(struct nl_sock *socket, uint32_t ifindex, enum hook hook, bool without_filters,
		char text[AHEAD_SIZE])
{
	struct filter filter;
	bool ours;
	uint32_t id = find_tcx_program(ifindex, hook, &ours);

	if (id) {
		describe_program(id, "TCX program", text);
		return true;
	}
	if (ours || without_filters ||
	    !qdisc_find_filter(socket, ifindex, hook == HOOK_INGRESS, is_ahead, &filter) ||
	    leads_to_ours(ifindex, hook, &filter))
		return false;
	if (filter.program)
		describe_program(filter.program, "tc program", text);
	else
		snprintf(text, AHEAD_SIZE, "a tc filter (%s, priority %u)", filter.kind,
			 filter.priority);
	return true;
}
