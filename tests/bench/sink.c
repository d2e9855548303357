/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sink.c - where the benchmark's packets end: see sink.bpf.c.
 *
 * usage: sink attach INTERFACE PORT NAME   drops UDP packets to the port, 0: to any; it stays
 *                                          when this program ends
 *        sink answer|drop NAME             what is done with them from now on
 *        sink count NAME                   how many there were
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <err.h>
#include <linux/types.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/sink.skel.h"
#include "sink.h"
#include "sink_count.h"

static void attach(const char *interface, int port, const char *name)
{
	DECLARE_LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)if_nametoindex(interface),
			    .attach_point = BPF_TC_INGRESS);
	DECLARE_LIBBPF_OPTS(bpf_tc_opts, filter);
	struct sink_settings settings = {.port = (__u32)port};
	struct sink_bpf *skeleton = sink_bpf__open_and_load();
	char path[128];
	__u32 zero = 0;
	int status;

	if (!skeleton)
		err(2, "loading the program");
	bpf_map_update_elem(bpf_map__fd(skeleton->maps.settings), &zero, &settings, BPF_ANY);
	mkdir(SINKS, 0700);
	sink_path(path, sizeof(path), name, "settings");
	if (bpf_obj_pin(bpf_map__fd(skeleton->maps.settings), path))
		err(2, "pinning %s", path);
	sink_path(path, sizeof(path), name, "arrived");
	if (bpf_obj_pin(bpf_map__fd(skeleton->maps.arrived), path))
		err(2, "pinning %s", path);
	status = bpf_tc_hook_create(&hook);
	if (status && status != -EEXIST)
		errx(2, "clsact on %s: %s", interface, strerror(-status));
	filter.prog_fd = bpf_program__fd(skeleton->progs.sink);
	status = bpf_tc_attach(&hook, &filter);
	if (status)
		errx(2, "the filter on %s: %s", interface, strerror(-status));
	sink_bpf__destroy(skeleton);
}

static void answer(const char *name, __u32 on)
{
	struct sink_settings settings;
	int map = sink_open(name, "settings");
	__u32 zero = 0;

	if (bpf_map_lookup_elem(map, &zero, &settings))
		err(2, "the settings of %s", name);
	settings.answer = on;
	if (bpf_map_update_elem(map, &zero, &settings, BPF_ANY))
		err(2, "the settings of %s", name);
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "attach"))
		attach(argv[2], atoi(argv[3]), argv[4]);
	else if (argc == 3 && !strcmp(argv[1], "answer"))
		answer(argv[2], 1);
	else if (argc == 3 && !strcmp(argv[1], "drop"))
		answer(argv[2], 0);
	else if (argc == 3 && !strcmp(argv[1], "count"))
		printf("%llu\n", sink_count(sink_open(argv[2], "arrived")));
	else
		errx(2, "usage: sink attach INTERFACE PORT NAME | answer NAME | drop NAME | count "
			"NAME");
	return 0;
}
