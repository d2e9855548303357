/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* clsact.c - programs as direct-action filters. */
#include "datapath/clsact.h"

#include <bpf/libbpf.h>
#include <errno.h>

#define HOOK_OPTIONS(name, interface, at) \
	DECLARE_LIBBPF_OPTS(bpf_tc_hook, name, .ifindex = (int)(interface), \
			    .attach_point = (at) == HOOK_INGRESS ? BPF_TC_INGRESS : BPF_TC_EGRESS)

/* libbpf before 1.0 only returns the error. */
static int keep_errno(int result)
{
	if (result >= 0)
		return 0;
	errno = -result;
	return -1;
}

int clsact_create(uint32_t ifindex)
{
	DECLARE_LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)ifindex,
			    .attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS);

	return keep_errno(bpf_tc_hook_create(&hook));
}

void clsact_destroy(uint32_t ifindex)
{
	DECLARE_LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)ifindex,
			    .attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS);

	bpf_tc_hook_destroy(&hook);
}

uint32_t clsact_find(uint32_t ifindex, enum hook at)
{
	HOOK_OPTIONS(hook, ifindex, at);
	DECLARE_LIBBPF_OPTS(bpf_tc_opts, options, .handle = FILTER_HANDLE,
			    .priority = FILTER_PRIORITY);

	return bpf_tc_query(&hook, &options) ? 0 : options.prog_id;
}

int clsact_attach(uint32_t ifindex, enum hook at, int program_fd, bool replace)
{
	HOOK_OPTIONS(hook, ifindex, at);
	DECLARE_LIBBPF_OPTS(bpf_tc_opts, options, .prog_fd = program_fd, .handle = FILTER_HANDLE,
			    .priority = FILTER_PRIORITY, .flags = replace ? BPF_TC_F_REPLACE : 0);

	if (keep_errno(bpf_tc_attach(&hook, &options)))
		return -1;
	/* The kernel echoes the filter as it now stands. */
	if (!options.prog_id) {
		errno = ENOENT;
		return -1;
	}
	return 0;
}

int clsact_detach(uint32_t ifindex, enum hook at)
{
	HOOK_OPTIONS(hook, ifindex, at);
	DECLARE_LIBBPF_OPTS(bpf_tc_opts, options, .handle = FILTER_HANDLE,
			    .priority = FILTER_PRIORITY);

	return keep_errno(bpf_tc_detach(&hook, &options));
}
