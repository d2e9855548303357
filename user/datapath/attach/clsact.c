/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* clsact.c - programs as direct-action filters. */
#include "datapath/attach/clsact.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "net/filter.h"
#include "net/netlink.h"
#include "net/qdisc.h"
#include "net/redirect.h"
#include "datapath/load/objects.h"

/* libbpf has these calls too, with a socket of its own for each: that is most of what they
 * cost. */
static struct nl_sock *own_socket(void)
{
	static struct nl_sock *socket;
	struct cni_error ignored = {0};

	if (!socket)
		socket = netlink_open(&ignored);
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

static int refuse(void)
{
	errno = ENOBUFS;
	return -1;
}

int clsact_create(uint32_t ifindex)
{
	struct nl_sock *socket = own_socket();

	return socket ? qdisc_add_clsact(socket, ifindex) : refuse();
}

void clsact_destroy(uint32_t ifindex)
{
	struct nl_sock *socket = own_socket();

	if (socket)
		qdisc_delete_clsact(socket, ifindex);
}

uint32_t clsact_find(uint32_t ifindex, enum hook at)
{
	struct filter_place place = place_at(ifindex, at);
	struct nl_sock *socket = own_socket();

	return socket ? filter_find(socket, &place) : 0;
}

uint32_t clsact_find_redirect(uint32_t ifindex)
{
	struct nl_sock *socket = own_socket();

	return socket ? redirect_at_ingress(socket, ifindex, FILTER_PRIORITY) : 0;
}

int clsact_attach(uint32_t ifindex, enum hook at, int program_fd, bool replace)
{
	struct filter_place place = place_at(ifindex, at);
	struct nl_sock *socket = own_socket();
	struct bpf_prog_info info;
	uint32_t size = sizeof(info);
	char name[64];

	memset(&info, 0, sizeof(info));
	if (bpf_obj_get_info_by_fd(program_fd, &info, &size))
		return -1;
	snprintf(name, sizeof(name), "%s:[%u]", info.name, info.id);
	return socket ? filter_add(socket, &place, program_fd, name, replace) : refuse();
}

int clsact_detach(uint32_t ifindex, enum hook at)
{
	struct filter_place place = place_at(ifindex, at);
	struct nl_sock *socket = own_socket();

	return socket ? filter_delete(socket, &place) : refuse();
}
