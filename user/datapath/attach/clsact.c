/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* clsact.c - programs as direct-action filters. */
#include "datapath/attach/clsact.h"

#include <bpf/bpf.h>
#include <stdio.h>
#include <string.h>

#include "net/netlink.h"
#include "net/tc.h"
#include "datapath/load/objects.h"

/* libbpf has these calls too, with a socket of its own for each: that is most of what they
 * cost. NULL: there is none, so all that is asked fails. */
static struct nl_sock *own_socket(void)
{
	static struct nl_sock *socket;
	struct cni_error ignored = {0};

	if (!socket)
		socket = netlink_open(NETLINK_ROUTE, &ignored);
	cni_error_release(&ignored);
	return socket;
}

static struct filter_place place_at(uint32_t ifindex, enum hook at)
{
	return (struct filter_place){
		.ifindex = ifindex,
		.egress = at == HOOK_EGRESS,
		.priority = FILTER_PRIORITY,
		.handle = FILTER_HANDLE,
	};
}

int clsact_create(uint32_t ifindex)
{
	return qdisc_add_clsact(own_socket(), ifindex);
}

void clsact_destroy(uint32_t ifindex)
{
	qdisc_delete_clsact(own_socket(), ifindex);
}

uint32_t clsact_find(uint32_t ifindex, enum hook at)
{
	struct filter_place place = place_at(ifindex, at);

	return filter_program(own_socket(), &place);
}

static bool redirects_before_ours(const struct filter *filter)
{
	return filter->redirect && filter->priority < FILTER_PRIORITY;
}

uint32_t clsact_find_redirect(uint32_t ifindex)
{
	struct filter filter;

	return filter_find(own_socket(), ifindex, true, redirects_before_ours, &filter)
		       ? filter.redirect
		       : 0;
}

int clsact_attach(uint32_t ifindex, enum hook at, int program_fd, bool replace)
{
	struct filter_place place = place_at(ifindex, at);
	struct bpf_prog_info info;
	uint32_t size = sizeof(info);
	char name[64];

	memset(&info, 0, sizeof(info));
	if (bpf_obj_get_info_by_fd(program_fd, &info, &size))
		return -1;
	snprintf(name, sizeof(name), "%s:[%u]", info.name, info.id);
	return filter_add(own_socket(), &place, program_fd, name, replace);
}

int clsact_detach(uint32_t ifindex, enum hook at)
{
	struct filter_place place = place_at(ifindex, at);

	return filter_delete(own_socket(), &place);
}
