/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * generator.c - sends datagrams of many flows, as fast as one core can: the kernel runs an XDP
 * program on frames that it redirects out of a veth (Linux 5.18). The other end's GRO must be on.
 *
 * usage: generator INTERFACE MAC SOURCE DESTINATION PORT [--flows N] [--first FLOW]
 *            [--to-many] [--size BYTES] [--pace PER-SECOND]
 *            --count PACKETS | --seconds S --sink NAME | --arrivals N --sink NAME |
 *            --bursts N --sink NAME
 *   --flows     number of flows, used in turn; sources vary (with --to-many destinations), 16,384
 *               flows for each address, from the given one upwards
 *   --first     the first flow, to have others than before
 *   --size      of the Ethernet frame without its checksum; more if the headers need it
 *   --count     ends after so many packets (30 s at most)
 *   --seconds   measures what arrives at the sink, after a fifth of this time
 *   --arrivals  measures from the first packet until so many have arrived (30 s at most)
 *   --bursts    once a second all flows send a packet, so many times; each burst is measured until
 *               all have arrived
 * Where the sink is measured and no pace is given, packets wait until there is room for them on the
 * way. Prints packets sent, arrived at the sink per second, and sent from one wait to the next; of
 * bursts the rate of all of them and of the slowest.
 */
/* Before linux/ipv6.h, so that it does not define the same again */
#include "tool.h"

#include <bpf/bpf.h>
#include <limits.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../sums.h"
#include "generator.h"
#include "bench/generator.skel.h"
#include "sink_count.h"

#define LARGEST 1514
#define PRIORITY 50
#define SAMPLE 1000 /* microseconds */
#define LONGEST 30.0

struct order {
	unsigned long long arrivals;
	int bursts;
	double seconds;
	int size;
	int sink;
};

struct moment {
	double time;
	unsigned long long arrived;
	unsigned long long sent;
	unsigned long long waited;
};

const char tool_usage[] = "usage: generator INTERFACE MAC SOURCE DESTINATION PORT OPTION...\n";

static struct generator_plan plan = {.flows = 1};
static struct order order = {.size = 60, .sink = -1};
static char frame[LARGEST];

static void parse_order(int argc, char **argv)
{
	int flows = 1, first = 0, count = 0, arrivals = 0;
	const char *pace = NULL, *seconds = "0", *sink = NULL;
	bool to_many = false;
	const struct tool_option options[] = {
		{"flows", .number = &flows, .low = 1, .high = INT_MAX},
		{"first", .number = &first, .high = INT_MAX},
		{"to-many", .flag = &to_many},
		{"size", .number = &order.size, .low = 60, .high = LARGEST},
		{"pace", .text = &pace},
		{"count", .number = &count, .high = INT_MAX},
		{"seconds", .text = &seconds},
		{"arrivals", .number = &arrivals, .high = INT_MAX},
		{"bursts", .number = &order.bursts, .high = GENERATOR_BURSTS},
		{"sink", .text = &sink},
		{NULL},
	};

	parse_options(argc, argv, options);
	plan.flows = (__u32)flows;
	plan.first = (__u32)first;
	plan.to_many = to_many;
	plan.interval = pace ? (__u64)(1e9 / atof(pace)) : 0;
	plan.count = (__u64)count;
	plan.every = order.bursts ? 1000000000 : 0;
	order.seconds = atof(seconds);
	order.arrivals = (unsigned long long)arrivals;
	order.sink = sink ? sink_open(sink, "arrived") : -1;
	plan.paced_by_sink = sink && !pace && !order.bursts;
}

static void plan_ethernet(struct ethhdr *ethernet, const char *destination)
{
	uint8_t *mac = ethernet->h_dest;

	if (sscanf(destination, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0], &mac[1], &mac[2], &mac[3],
		   &mac[4], &mac[5]) != ETH_ALEN)
		errx(2, "not a MAC: %s", destination);
	ethernet->h_source[0] = 2;
	ethernet->h_proto = htons(plan.ipv6 ? ETH_P_IPV6 : ETH_P_IP);
}

/* The word that varies stays zero, so that it does not change the sums. */
static void plan_address(int family, const char *text, void *address, size_t size, bool varies)
{
	uint8_t *last_word = (uint8_t *)address + size - 4;
	uint32_t word;

	if (inet_pton(family, text, address) != 1)
		errx(2, "not such an address as the other one: %s", text);
	memcpy(&word, last_word, sizeof(word));
	if (!varies)
		return;
	plan.base = ntohl(word);
	memset(last_word, 0, sizeof(word));
}

static struct udphdr udp_to(const char *port, size_t headers)
{
	size_t length = (size_t)order.size - headers + sizeof(struct udphdr);

	return (struct udphdr){.dest = htons((uint16_t)atoi(port)), .len = htons((uint16_t)length)};
}

static void plan_ipv4(char **arguments)
{
	struct generator_headers4 *headers = &plan.headers4;

	plan_ethernet(&headers->ethernet, arguments[1]);
	plan_address(AF_INET, arguments[2], &headers->ip.saddr, 4, !plan.to_many);
	plan_address(AF_INET, arguments[3], &headers->ip.daddr, 4, plan.to_many);
	headers->ip.version = 4;
	headers->ip.ihl = 5;
	headers->ip.ttl = 64;
	headers->ip.protocol = IPPROTO_UDP;
	headers->ip.tot_len = htons((uint16_t)(order.size - ETH_HLEN));
	headers->udp = udp_to(arguments[4], sizeof(*headers));
	plan.ip_sum = checksum_add(0, &headers->ip, sizeof(headers->ip));
	plan.udp_sum = checksum_add((uint32_t)IPPROTO_UDP + ntohs(headers->udp.len), &headers->udp,
				    sizeof(headers->udp));
	plan.udp_sum = checksum_add(plan.udp_sum, &headers->ip.saddr, 8);
}

static void plan_ipv6(char **arguments)
{
	struct generator_headers6 *headers = &plan.headers6;

	if (order.size < (int)sizeof(*headers))
		order.size = (int)sizeof(*headers);
	plan_ethernet(&headers->ethernet, arguments[1]);
	plan_address(AF_INET6, arguments[2], &headers->ip.saddr, 16, !plan.to_many);
	plan_address(AF_INET6, arguments[3], &headers->ip.daddr, 16, plan.to_many);
	headers->ip.version = 6;
	headers->ip.hop_limit = 64;
	headers->ip.nexthdr = IPPROTO_UDP;
	headers->udp = udp_to(arguments[4], sizeof(*headers));
	headers->ip.payload_len = headers->udp.len;
	plan.udp_sum = checksum_add((uint32_t)IPPROTO_UDP + ntohs(headers->udp.len), &headers->udp,
				    sizeof(headers->udp));
	plan.udp_sum = checksum_add(plan.udp_sum, &headers->ip.saddr, 32);
}

static void plan_packet(char **arguments)
{
	plan.ifindex = if_nametoindex(arguments[0]);
	plan.ipv6 = strchr(arguments[2], ':') != NULL;
	if (plan.ipv6)
		plan_ipv6(arguments);
	else
		plan_ipv4(arguments);
}

static struct moment moment_now(const struct generator_plan *live)
{
	return (struct moment){.time = seconds_now(),
			       .arrived = order.sink < 0 ? 0 : sink_count(order.sink),
			       .sent = *(volatile const __u64 *)&live->sent,
			       .waited = *(volatile const __u64 *)&live->waited};
}

static int bursts_done(const struct generator_plan *live)
{
	return (int)*(volatile const __u32 *)&live->bursts;
}

static bool is_done(const struct generator_plan *live, const struct moment *begin,
		    const struct moment *now)
{
	double longest = order.seconds > 0 ? order.seconds : LONGEST;

	if (now->time - begin->time >= longest)
		return true;
	if (order.bursts)
		return bursts_done(live) >= order.bursts;
	if (plan.count)
		return now->sent >= plan.count;
	return order.arrivals && now->arrived - begin->arrived >= order.arrivals;
}

/* Above all other processes; the measuring one above the sending one. */
static void take_precedence(int priority)
{
	struct sched_param parameters = {.sched_priority = priority};

	if (sched_setscheduler(0, SCHED_FIFO, &parameters))
		warn("no real-time priority");
}

/* One system call that lasts until the child is killed, because each needs milliseconds to end. */
static pid_t start_sending(int program)
{
	DECLARE_LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame,
			    .data_size_in = (__u32)order.size, .batch_size = 64, .repeat = INT_MAX,
			    .flags = BPF_F_TEST_XDP_LIVE_FRAMES, );
	pid_t child = fork();

	if (child < 0)
		err(2, "fork");
	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	take_precedence(PRIORITY);
	if (bpf_prog_test_run_opts(program, &options))
		err(2, "sending");
	exit(2);
}

static void wait_for_first(const struct generator_plan *live, pid_t child)
{
	while (!moment_now(live).sent) {
		if (waitpid(child, NULL, WNOHANG))
			errx(2, "nothing was sent");
		usleep(SAMPLE);
	}
}

/* live: where the program counts. */
static void send_until_done(int program, const struct generator_plan *live, struct moment *begin,
			    struct moment *now)
{
	pid_t child = start_sending(program);

	wait_for_first(live, child);
	if (order.seconds > 0)
		usleep((useconds_t)(order.seconds / 5 * 1e6));
	*begin = *now = moment_now(live);
	while (!is_done(live, begin, now)) {
		usleep(SAMPLE);
		*now = moment_now(live);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static void print_bursts(const struct generator_plan *live)
{
	__u64 all = 0, longest = 0;

	if (bursts_done(live) < order.bursts)
		errx(2, "packets of a burst are lost");
	for (int i = 0; i < order.bursts; i++) {
		all += live->took[i];
		if (live->took[i] > longest)
			longest = live->took[i];
	}
	printf("all=%.0f slowest=%.0f\n", order.bursts * (live->flows * 1e9) / (double)all,
	       live->flows * 1e9 / (double)longest);
}

int main(int argc, char **argv)
{
	struct generator_bpf *skeleton;
	struct moment begin, end;
	double seconds;

	parse_order(argc, argv);
	if (argc - optind != 5)
		die_usage();
	plan_packet(argv + optind);
	skeleton = generator_bpf__open();
	if (!skeleton)
		err(2, "opening the program");
	skeleton->bss->plan = plan;
	if (order.sink >= 0 && bpf_map__reuse_fd(skeleton->maps.arrived, order.sink))
		err(2, "using the sink's count");
	if (generator_bpf__load(skeleton))
		err(2, "loading the program");
	take_precedence(PRIORITY + 1);
	send_until_done(bpf_program__fd(skeleton->progs.generate), &skeleton->bss->plan, &begin,
			&end);
	seconds = end.time - begin.time;
	printf("sent=%llu arrived_per_second=%.0f sent_per_wait=%.0f\n", end.sent,
	       (double)(end.arrived - begin.arrived) / seconds,
	       (double)(end.sent - begin.sent) / (double)(end.waited - begin.waited + 1));
	if (order.bursts)
		print_bursts(&skeleton->bss->plan);
	generator_bpf__destroy(skeleton);
	return 0;
}
