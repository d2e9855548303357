/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sink.c - where the benchmark's packets end: see sink.bpf.c.
 *
 * usage: sink attach INTERFACE PORT NAME   drops UDP packets to the port (0: to any), also after
 *                                          this program has ended
 *        sink drop|answer|pass NAME        drops, answers or passes them from now on
 *        sink count NAME                   prints how many there were
 *        sink hold PORT                    keeps a UDP socket open that is never read, until it
 *                                          is killed; prints "ready"
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <err.h>
#include <linux/types.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

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

static void act(const char *name, enum sink_action action)
{
	struct sink_settings settings;
	int map = sink_open(name, "settings");
	__u32 zero = 0;

	if (bpf_map_lookup_elem(map, &zero, &settings))
		err(2, "the settings of %s", name);
	settings.action = action;
	if (bpf_map_update_elem(map, &zero, &settings, BPF_ANY))
		err(2, "the settings of %s", name);
}

/* The socket is never read: when it is full, packets are dropped after all work of the IP stack. */
static _Noreturn void hold(int port)
{
	struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
	int fd = socket(AF_INET6, SOCK_DGRAM, 0), smallest = 0; /* for IPv4 too */

	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &smallest, sizeof(smallest));
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)))
		err(2, "binding to port %d", port);
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	const char *verb = argc > 2 ? argv[1] : "";

	if (argc == 5 && !strcmp(verb, "attach"))
		attach(argv[2], atoi(argv[3]), argv[4]);
	else if (argc == 3 && !strcmp(verb, "drop"))
		act(argv[2], SINK_DROP);
	else if (argc == 3 && !strcmp(verb, "answer"))
		act(argv[2], SINK_ANSWER);
	else if (argc == 3 && !strcmp(verb, "pass"))
		act(argv[2], SINK_PASS);
	else if (argc == 3 && !strcmp(verb, "count"))
		printf("%llu\n", sink_count(sink_open(argv[2], "arrived")));
	else if (argc == 3 && !strcmp(verb, "hold"))
		hold(atoi(argv[2]));
	else
		errx(2, "usage: sink attach INTERFACE PORT NAME | drop|answer|pass|count NAME | "
			"hold PORT");
	return 0;
}
