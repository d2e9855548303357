/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tcx.c - programs at an interface's TCX hooks. */
#include "datapath/attach/tcx.h"

#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* enum bpf_attach_type of Linux 6.6; older headers lack the names. */
static const uint32_t attach_types[HOOK_COUNT] = {
	[HOOK_INGRESS] = 46, /* BPF_TCX_INGRESS */
	[HOOK_EGRESS] = 47,  /* BPF_TCX_EGRESS */
};

static int call_bpf(enum bpf_cmd command, union bpf_attr *attributes)
{
	return (int)syscall(SYS_bpf, command, attributes, sizeof(*attributes));
}

int tcx_list(uint32_t ifindex, enum hook hook, uint32_t ids[TCX_PROGRAMS], size_t *count)
{
	union bpf_attr attributes;

	memset(&attributes, 0, sizeof(attributes));
	/* The field means an ifindex here. */
	attributes.query.target_fd = ifindex;
	attributes.query.attach_type = attach_types[hook];
	attributes.query.prog_ids = (uint64_t)(uintptr_t)ids;
	attributes.query.prog_cnt = TCX_PROGRAMS;
	*count = 0;
	if (call_bpf(BPF_PROG_QUERY, &attributes))
		/* Linux 6.6 says so of an interface that never had any. */
		return errno == ENOENT ? 0 : -1;
	*count = attributes.query.prog_cnt;
	return 0;
}

int tcx_attach(uint32_t ifindex, enum hook hook, int program_fd, int replaced_fd)
{
	union bpf_attr attributes;

	memset(&attributes, 0, sizeof(attributes));
	attributes.target_fd = ifindex;
	attributes.attach_bpf_fd = (uint32_t)program_fd;
	attributes.attach_type = attach_types[hook];
	if (replaced_fd >= 0) {
		attributes.attach_flags = BPF_F_REPLACE;
		attributes.replace_bpf_fd = (uint32_t)replaced_fd;
	}
	return call_bpf(BPF_PROG_ATTACH, &attributes);
}

int tcx_detach(uint32_t ifindex, enum hook hook, int program_fd)
{
	union bpf_attr attributes;

	memset(&attributes, 0, sizeof(attributes));
	attributes.target_fd = ifindex;
	attributes.attach_bpf_fd = (uint32_t)program_fd;
	attributes.attach_type = attach_types[hook];
	return call_bpf(BPF_PROG_DETACH, &attributes);
}

bool tcx_is_supported(uint32_t ifindex)
{
	uint32_t ids[TCX_PROGRAMS];
	size_t count;

	return tcx_list(ifindex, HOOK_INGRESS, ids, &count) == 0;
}
