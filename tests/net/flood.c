/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * flood.c - a flood of SYNs or datagrams, as fast as the machine gives: an XDP program run
 * on frames that it redirects out of a veth (Linux 5.18). The other end's GRO must be on.
 * Prints how many packets it sent, and how many a second.
 *
 * usage: flood tcp|udp INTERFACE DESTINATION-MAC DESTINATION PORT SECONDS [SOURCE]
 *   SOURCE: with this address and random ports; else from all over 100.64.0.0/10
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <err.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/tcp.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "flood.h"
#include "tests/flood.skel.h"

#define BATCH 20000

static uint32_t sum_words(const void *bytes, size_t size, uint32_t sum)
{
	const uint8_t *byte = bytes;

	for (size_t i = 0; i + 1 < size; i += 2)
		sum += (uint32_t)byte[i] << 8 | byte[i + 1];
	return sum;
}

static uint16_t checksum(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

/* What the program will fill in sums up to nothing: it counts as zero here. */
static void plan_headers(struct flood_headers *headers, char **arguments)
{
	unsigned int mac[ETH_ALEN];

	if (sscanf(arguments[2], "%x:%x:%x:%x:%x:%x", &mac[0], &mac[1], &mac[2], &mac[3], &mac[4],
		   &mac[5]) != ETH_ALEN)
		errx(2, "not a MAC: %s", arguments[2]);
	for (int i = 0; i < ETH_ALEN; i++)
		headers->ethernet.h_dest[i] = (uint8_t)mac[i];
	headers->ethernet.h_source[0] = 2;
	headers->ethernet.h_proto = htons(ETH_P_IP);
	headers->ip.version = 4;
	headers->ip.ihl = 5;
	headers->ip.ttl = 64;
	headers->ip.protocol = strcmp(arguments[0], "udp") ? IPPROTO_TCP : IPPROTO_UDP;
	headers->ip.tot_len = htons(sizeof(headers->ip) + sizeof(headers->tcp));
	headers->tcp.dest = htons((uint16_t)atoi(arguments[4]));
	if (inet_pton(AF_INET, arguments[3], &headers->ip.daddr) != 1 ||
	    (arguments[6] && inet_pton(AF_INET, arguments[6], &headers->ip.saddr) != 1))
		errx(2, "not an IPv4 address: %s %s", arguments[3], arguments[6]);
	headers->ip.check = checksum(sum_words(&headers->ip, sizeof(headers->ip), 0));
	if (headers->ip.protocol == IPPROTO_UDP)
		return;
	headers->tcp.doff = 5;
	headers->tcp.syn = 1;
	headers->tcp.window = htons(64240);
	headers->tcp.check = checksum(sum_words(&headers->ip.saddr, 8,
						sum_words(&headers->tcp, sizeof(headers->tcp),
							  IPPROTO_TCP + sizeof(headers->tcp))));
}

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	DECLARE_LIBBPF_OPTS(bpf_test_run_opts, options, .repeat = BATCH, .batch_size = 64,
			    .flags = BPF_F_TEST_XDP_LIVE_FRAMES, );
	struct flood_headers frame = {0};
	struct flood_bpf *skeleton;
	double begin, end;
	long sent = 0;

	if (argc < 7 || argc > 8)
		errx(2, "usage: flood tcp|udp INTERFACE MAC DESTINATION PORT SECONDS [SOURCE]");
	skeleton = flood_bpf__open();
	if (!skeleton)
		err(2, "opening the program");
	skeleton->bss->plan.ifindex = if_nametoindex(argv[2]);
	skeleton->bss->plan.own_source = argv[7] != NULL;
	plan_headers(&skeleton->bss->plan.headers, argv + 1);
	if (flood_bpf__load(skeleton))
		err(2, "loading the program");
	options.data_in = &frame;
	options.data_size_in = sizeof(frame);
	begin = seconds_now();
	for (end = begin; end - begin < atof(argv[6]); end = seconds_now()) {
		if (bpf_prog_test_run_opts(bpf_program__fd(skeleton->progs.flood), &options))
			err(2, "sending");
		sent += BATCH;
	}
	printf("sent=%ld per_second=%.0f\n", sent, (double)sent / (end - begin));
	flood_bpf__destroy(skeleton);
	return 0;
}
