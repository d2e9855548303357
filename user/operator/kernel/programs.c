/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* programs.c - puts the programs into the kernel that only the tool needs. */
#include "operator/kernel/programs.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "device_members.h"
#include "bpf/adopt.skel.h"
#include "bpf/drops.skel.h"
#include "datapath/load/bpf_error.h"
#include "datapath/load/loader.h"
#include "datapath/load/maps.h"
#include "lib/memory.h"
#include "net/netlink.h"

/* Since Linux 5.17 the kernel tells why it drops a packet. */
static int attach_drops(const struct drops_bpf *skeleton, bool *has_reason, struct cni_error *err)
{
	int link = bpf_raw_tracepoint_open("kfree_skb", bpf_program__fd(skeleton->progs.kfree_skb));

	*has_reason = link >= 0;
	if (link < 0)
		link = bpf_raw_tracepoint_open("kfree_skb",
					       bpf_program__fd(skeleton->progs.kfree_skb_old));
	return link < 0 ? bpf_error_set(err, errno, "cannot attach to the tracepoint kfree_skb")
			: link;
}

int programs_attach_drops(const struct objects *objects, const struct tracing *tracing,
			  const struct trace_filter *filter, bool *has_reason,
			  struct cni_error *err)
{
	struct drops_bpf *skeleton;
	uint64_t cookie;
	int link = -1;

	if (netlink_get_netns_cookie(&cookie, err))
		return -1;
	skeleton = or_exit(drops_bpf__open());
	skeleton->rodata->host_cookie = cookie;
	skeleton->rodata->wanted_protocol = filter->protocol;
	memcpy((void *)skeleton->rodata->wanted_address, filter->address, sizeof(filter->address));
	if (bpf_map__reuse_fd(skeleton->maps.trace_events, tracing->events) ||
	    bpf_map__reuse_fd(skeleton->maps.data_trace, tracing->settings))
		bpf_error_set(err, errno, "cannot use the programs' maps for events");
	else if (!loader_load_over_maps(skeleton->obj, objects, err))
		link = attach_drops(skeleton, has_reason, err);
	drops_bpf__destroy(skeleton);
	return link;
}

int programs_load_adopt(const struct objects *objects, struct cni_error *err)
{
	struct adopt_bpf *skeleton = or_exit(adopt_bpf__open());
	int program = -1;

	skeleton->rodata->assured_places = map_capacity(objects, MAP_ASSURED) - 1;
	skeleton->rodata->half_open_places = map_capacity(objects, MAP_HALF_OPEN) - 1;
	if (!loader_load_over_maps(skeleton->obj, objects, err))
		program = loader_keep_program(skeleton->progs.adopt, err);
	adopt_bpf__destroy(skeleton);
	return program;
}
