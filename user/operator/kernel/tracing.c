/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracing.c - asks loaded programs to tell what they do with packets, and reads it. */
#include "operator/kernel/tracing.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "datapath/load/bpf_error.h"
#include "lib/memory.h"
#include "lib/cleanup.h"
#include "lib/clock.h"
#include "lib/io.h"
#include "device_members.h"
#include "bpf/adopt.skel.h"
#include "bpf/drops.skel.h"
#include "datapath/load/loader.h"
#include "datapath/load/maps.h"
#include "net/netlink.h"

#define BUFFER_PAGES 64 /* for each CPU */
#define MOST_TOLD 65536
#define MOST_MAPS 128

int tracing_lock(const char *directory, int seconds, struct cni_error *err)
{
	const struct lock_wanted wanted = {
		.fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		.operation = LOCK_EX,
		.seconds = seconds,
	};

	if (wanted.fd < 0)
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED, "cannot open %s: %s", directory,
				     strerror(errno));
	if (!lock_file_take(&wanted))
		return wanted.fd;
	close(wanted.fd);
	return cni_error_set(err, CNI_ERROR_TRY_AGAIN,
			     "another bpf-portmap trace runs on this host, or doctor: end"
			     " that first");
}

void tracing_clear(struct tracing *tracing)
{
	*tracing = (struct tracing){.settings = -1, .events = -1};
}

void tracing_close(struct tracing *tracing)
{
	perf_buffer__free(tracing->buffer);
	if (tracing->settings >= 0)
		close(tracing->settings);
	if (tracing->events >= 0)
		close(tracing->events);
	free(tracing->told);
	tracing_clear(tracing);
}

static bool is_map(int fd, const char *name, size_t value_size)
{
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info);

	return !bpf_obj_get_info_by_fd(fd, &info, &size) && info.value_size == value_size &&
	       !strncmp(info.name, name, BPF_OBJ_NAME_LEN - 1);
}

static int find_maps(struct tracing *tracing, int program, struct cni_error *err)
{
	uint32_t ids[MOST_MAPS], size;
	struct bpf_prog_info info = {.nr_map_ids = MOST_MAPS, .map_ids = (uint64_t)(uintptr_t)ids};

	size = sizeof(info);
	if (bpf_obj_get_info_by_fd(program, &info, &size))
		return bpf_error_set(err, errno, "cannot look at the programs that run");
	for (uint32_t i = 0; i < info.nr_map_ids && i < MOST_MAPS; i++) {
		int fd = bpf_map_get_fd_by_id(ids[i]);

		if (fd < 0)
			return bpf_error_set(err, errno,
					     "cannot open the maps of the programs that run");
		if (tracing->settings < 0 &&
		    is_map(fd, TRACE_SETTINGS, sizeof(struct trace_settings)))
			tracing->settings = fd;
		else if (tracing->events < 0 && is_map(fd, TRACE_EVENTS, sizeof(uint32_t)))
			tracing->events = fd;
		else
			close(fd);
	}
	return 0;
}

static bool read_settings(const struct tracing *tracing, struct trace_settings *settings)
{
	uint32_t only = 0;

	return !bpf_map_lookup_elem(tracing->settings, &only, settings) &&
	       settings->version == TRACE_VERSION;
}

static void take_sample(void *context, int cpu, void *data, uint32_t size)
{
	struct tracing *tracing = context;
	struct told *told;

	if (size < sizeof(told->drop) || tracing->held == MOST_TOLD) {
		tracing->lost++;
		return;
	}
	told = ARRAY_ADD(tracing->told, tracing->held);
	told->cpu = (uint32_t)cpu;
	memcpy(&told->event, data, size < sizeof(told->event) ? size : sizeof(told->event));
}

static void count_lost(void *context, int cpu, unsigned long long count)
{
	struct tracing *tracing = context;

	tracing->lost += count;
}

int tracing_open(struct tracing *tracing, const struct objects *objects, struct cni_error *err)
{
	int program = objects->programs[PROGRAM_FROM_UPLINK];
	struct trace_settings settings;

	tracing->program = program_id_of(PROGRAM_FROM_UPLINK, program);
	if (find_maps(tracing, program, err))
		return -1;
	if (tracing->settings < 0 || tracing->events < 0 || !read_settings(tracing, &settings))
		return cni_error_set(
			err, CNI_ERROR_KERNEL_REFUSED,
			"this bpf-portmap cannot trace the programs that run here, which are of"
			" another version: use the bpf-portmap of that version, or replace them"
			" by `bpf-portmap upgrade`");
	tracing->buffer = perf_buffer__new(tracing->events, BUFFER_PAGES, take_sample, count_lost,
					   tracing, NULL);
	return tracing->buffer ? 0 : bpf_error_set(err, errno, "cannot make buffers for events");
}

bool tracing_is_outdated(const struct tracing *tracing, const char *directory)
{
	cleanup_close int program = -1;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", directory, program_name(PROGRAM_FROM_UPLINK));
	program = bpf_obj_get(path);
	return program >= 0 && program_id_of(PROGRAM_FROM_UPLINK, program) != tracing->program;
}

int tracing_ask(struct tracing *tracing, const struct trace_filter *filter, uint32_t seconds,
		struct cni_error *err)
{
	struct trace_settings settings = {.version = TRACE_VERSION, .filter = *filter};
	uint32_t only = 0;

	if (seconds)
		settings.until = clock_of_programs() + seconds;
	if (!bpf_map_update_elem(tracing->settings, &only, &settings, BPF_ANY))
		return 0;
	return bpf_error_set(err, errno, "cannot ask the programs to tell what they do");
}

/* Both kinds begin with the time. */
static int compare(const void *a, const void *b)
{
	const struct told *first = a, *second = b;

	return (first->event.time > second->event.time) - (first->event.time < second->event.time);
}

/* Each CPU has a buffer of its own, and they are read one after the other. What is told meanwhile
 * is held: something before it may be in a buffer that was read already. */
int tracing_read(struct tracing *tracing, int milliseconds, struct cni_error *err)
{
	uint64_t until;
	int result;

	if (tracing->count)
		memmove(tracing->told, tracing->told + tracing->count,
			tracing->held * sizeof(*tracing->told));
	tracing->count = 0;
	result = perf_buffer__poll(tracing->buffer, milliseconds);
	until = clock_ns(CLOCK_MONOTONIC);
	if (result >= 0 || result == -EINTR)
		result = perf_buffer__consume(tracing->buffer);
	if (result < 0)
		return bpf_error_set(err, -result, "cannot read events");
	if (tracing->held)
		qsort(tracing->told, tracing->held, sizeof(*tracing->told), compare);
	for (; tracing->held && tracing->told[tracing->count].event.time < until; tracing->held--)
		tracing->count++;
	return 0;
}

/* --- programs that only the tool needs ------------------------------------------------------ */

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
