/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * flood.c - a flood of SYNs or datagrams at the speed of the machine: BPF_PROG_TEST_RUN runs an
 * XDP program that redirects each frame out of a veth (Linux 5.18). The other end needs GRO.
 */
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <netinet/tcp.h>

#include "raw.h"

#include "flood.h"
#include "tests/flood.skel.h"

#define BATCH 20000

const char tool_usage[] =
	"flood tcp|udp INTERFACE DESTINATION-MAC DESTINATION PORT SECONDS [SOURCE]\n"
	"     prints how many packets it sent, and how many per second\n"
	"     SOURCE: the source address, with random ports; else all of 100.64.0.0/10\n";

/* The fields that the XDP program fills in later keep the checksum as if they were 0. */
static void plan_headers(struct flood_headers *headers, char **arguments)
{
	struct sockaddr_in6 destination = parse_address(arguments[3], 0);
	struct sockaddr_in6 source = parse_address(arguments[6] ?: "0.0.0.0", 0);

	parse_mac(arguments[2], headers->ethernet.h_dest);
	headers->ethernet.h_source[0] = 2;
	headers->ethernet.h_proto = htons(ETH_P_IP);
	headers->ip = make_ipv4(&source, &destination,
				strcmp(arguments[0], "udp") ? IPPROTO_TCP : IPPROTO_UDP,
				sizeof(headers->tcp));
	headers->tcp.dest = htons((uint16_t)parse_port(arguments[4]));
	if (headers->ip.protocol == IPPROTO_UDP)
		return;
	headers->tcp.doff = 5;
	headers->tcp.syn = 1;
	headers->tcp.window = htons(64240);
	headers->tcp.check = transport_checksum(&source, &destination, IPPROTO_TCP, &headers->tcp,
						sizeof(headers->tcp));
}

int main(int argc, char **argv)
{
	DECLARE_LIBBPF_OPTS(bpf_test_run_opts, options, .repeat = BATCH, .batch_size = 64,
			    .flags = BPF_F_TEST_XDP_LIVE_FRAMES, );
	struct flood_headers frame = {0};
	struct flood_bpf *skeleton;
	long begin, end, sent = 0;
	int seconds;

	if (argc < 7 || argc > 8)
		die_usage();
	seconds = parse_number(argv[6], 1, 3600);
	skeleton = flood_bpf__open();
	if (!skeleton)
		die("opening the program");
	skeleton->bss->plan.ifindex = if_nametoindex(argv[2]);
	skeleton->bss->plan.own_source = argv[7] != NULL;
	plan_headers(&skeleton->bss->plan.headers, argv + 1);
	if (flood_bpf__load(skeleton))
		die("loading the program");
	options.data_in = &frame;
	options.data_size_in = sizeof(frame);
	begin = milliseconds_now();
	for (end = begin; end - begin < seconds * 1000L; end = milliseconds_now()) {
		if (bpf_prog_test_run_opts(bpf_program__fd(skeleton->progs.flood), &options))
			die("sending");
		sent += BATCH;
	}
	printf("sent=%ld per_second=%ld\n", sent, sent * 1000 / (end - begin));
	flood_bpf__destroy(skeleton);
	return 0;
}
