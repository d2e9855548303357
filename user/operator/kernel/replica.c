/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* replica.c - the programs once more, over copies of the host's maps. */
#include "operator/kernel/replica.h"
#include "operator/kernel/marked.h"
#include "tc_index_values.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "datapath/load/bpf_error.h"
#include "datapath/load/loader.h"
#include "datapath/load/maps.h"

#define FRAME_SIZE 2048
#define ASKED_SECONDS 60
#define EVENT_WAIT 50 /* ms: where a program tells nothing */

/* What the programs decide by. Left out: counters; fragments, of which a dry run has none; sockets'
 * flows, and what only user space reads. meta is last, as everywhere. */
static const enum map_number copied[] = {
	MAP_PORTMAPS,
	MAP_PUBLISHED_PORTS,
	MAP_SLOTS,
	MAP_ENDPOINTS,
	MAP_ENDPOINT_ADDRESSES,
	MAP_INTERFACES,
	MAP_HOST_ADDRESSES,
	MAP_POLICIES,
	MAP_CONNECTIONS,
	MAP_ALIASES,
	MAP_HALF_OPEN,
	MAP_ASSURED,
	MAP_SHARES,
	MAP_USAGE,
	MAP_CLIENT_SHARES,
	MAP_PORT_SHARES,
	MAP_NOTICED,
	MAP_CONTAINERS,
	MAP_META,
};

struct copying {
	struct replica *replica;
	enum map_number map;
};

void replica_clear(struct replica *replica)
{
	memset(replica, 0, sizeof(*replica));
	objects_clear(&replica->objects);
	tracing_clear(&replica->tracing);
}

void replica_release(struct replica *replica)
{
	tracing_close(&replica->tracing);
	objects_close(&replica->objects);
}

static bool is_zero(const char *value, size_t size)
{
	return !*value && !memcmp(value, value + 1, size - 1);
}

/* Most places of an array are as they are made. */
static enum walk copy_entry(const void *key, const void *value, void *context,
			    struct cni_error *err)
{
	const struct copying *copying = context;
	const struct objects *objects = &copying->replica->objects;

	if (!is_zero(value, map_value_size(copying->map)) &&
	    bpf_map_update_elem(objects->maps[copying->map], key, value, BPF_ANY))
		copying->replica->incomplete = true;
	return WALK_ON;
}

/* A DEVMAP_HASH has no batches. */
static void copy_veths(struct replica *replica, const struct objects *real)
{
	uint32_t key, ifindex, *previous = NULL;

	while (!bpf_map_get_next_key(real->maps[MAP_VETHS], previous, &key)) {
		if (!bpf_map_lookup_elem(real->maps[MAP_VETHS], &key, &ifindex))
			bpf_map_update_elem(replica->objects.maps[MAP_VETHS], &key, &ifindex,
					    BPF_ANY);
		previous = &key;
	}
}

static int copy_maps(struct replica *replica, const struct objects *real, struct cni_error *err)
{
	copy_veths(replica, real);
	for (size_t i = 0; i < sizeof(copied) / sizeof(copied[0]); i++) {
		struct copying copying = {.replica = replica, .map = copied[i]};

		if (map_walk(real, copied[i], copy_entry, &copying, err))
			return -1;
	}
	return 0;
}

/* A program's tag is a digest of its instructions. */
static bool has_same_tag(int program, int other)
{
	struct bpf_prog_info a = {0}, b = {0};
	uint32_t a_size = sizeof(a), b_size = sizeof(b);

	return !bpf_obj_get_info_by_fd(program, &a, &a_size) &&
	       !bpf_obj_get_info_by_fd(other, &b, &b_size) && !memcmp(a.tag, b.tag, sizeof(a.tag));
}

int replica_make(struct replica *replica, const struct objects *real, struct cni_error *err)
{
	const struct trace_filter any = {0};
	bool sees_devices;

	if (loader_load(&replica->objects, map_capacity(real, MAP_ASSURED) - 1, &sees_devices,
			err) ||
	    copy_maps(replica, real, err) ||
	    tracing_open(&replica->tracing, &replica->objects, err))
		return -1;
	replica->is_same = true;
	for (int program = 0; program < PROGRAM_COUNT; program++)
		if (!has_same_tag(replica->objects.programs[program], real->programs[program]))
			replica->is_same = false;
	return tracing_ask(&replica->tracing, &any, ASKED_SECONDS, err);
}

static int test_run(int program, bool verified, struct bpf_test_run_opts *options)
{
	struct marked marked;
	int result;

	if (!verified)
		return bpf_prog_test_run_opts(program, options);
	if (marked_load(&marked, program, TC_INDEX_OURS | TC_INDEX_VERIFIED))
		return -1;
	result = bpf_prog_test_run_opts(marked.program, options);
	marked_close(&marked);
	return result;
}

int replica_run(struct replica *replica, struct replica_run *run, struct cni_error *err)
{
	struct __sk_buff context = {.ifindex = run->ifindex, .ingress_ifindex = run->in_ifindex};
	uint8_t output[FRAME_SIZE];
	DECLARE_LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = run->frame,
			    .data_size_in = run->length, .data_out = output,
			    .data_size_out = sizeof(output), .ctx_in = &context,
			    .ctx_size_in = sizeof(context), .repeat = 1);

	if (test_run(replica->objects.programs[run->program], run->verified, &options))
		return bpf_error_set(err, errno, "cannot run the program %s",
				     program_name(run->program));
	if (tracing_read(&replica->tracing, EVENT_WAIT, err))
		return -1;
	run->happened = replica->tracing.count != 0;
	if (run->happened)
		run->event = replica->tracing.told[0].event;
	tracing_take(&replica->tracing);
	return 0;
}
