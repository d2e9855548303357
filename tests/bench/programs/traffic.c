/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * traffic.c - packets of many flows, by BPF_PROG_TEST_RUN.
 *
 * Flows are opened by packets: a request through from_uplink and to_container, an answer through
 * from_container and to_uplink, and so on; for a masqueraded flow the other way round.
 * programs.bpf.c keeps for each flow what the IP stack would carry from the first hook to the
 * second (tc_index, hash), and the port that a request got. So this does not depend on how the
 * programs store flows.
 */
#include "traffic.h"

#include <bpf/bpf.h>
#include <err.h>
#include <linux/bpf.h>
#include <linux/types.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "packet/frame.h"
#include "operations.h"
#include "programs.h"
#include "tests/programs.skel.h"

#define TC_ACT_REDIRECT 7
#define BATCH \
	1024    /* flows begun before the first is answered: the ring of half-open ones is small \
		 */
#define TURNS 4 /* a request and its answer */
#define MOST_TURNS 16
#define COUNTED 10000
#define STALE 2.5 /* seconds; after three a UDP flow may have its turn in the IP stack */
#define CLIENT_NUMBER 0x10000000 /* TCP's first sequence numbers */
#define SERVER_NUMBER 0x20000000

static struct programs_bpf *driver;
static struct operations *operations; /* NULL: no counts */
static uint32_t most_flows;

void traffic_prepare(uint32_t subjects, uint32_t flows)
{
	uint32_t index = 0;
	int nothing;

	driver = programs_bpf__open();
	if (!driver || bpf_map__set_max_entries(driver->maps.passed, subjects * flows) ||
	    programs_bpf__load(driver))
		err(1, "loading the generator of packets");
	most_flows = flows;
	nothing = bpf_program__fd(driver->progs.nothing);
	if (bpf_map_update_elem(bpf_map__fd(driver->maps.measured), &index, &nothing, BPF_ANY))
		err(1, "choosing a program");
}

void traffic_end(void)
{
	programs_bpf__destroy(driver);
}

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static bool is_outward(const struct hop *hop)
{
	return hop->program[0] == 't';
}

static bool is_masqueraded(const struct world *world)
{
	return world->population == MASQUERADES || world->population == FAST_MASQUERADES ||
	       world->population == NEW_MASQUERADES;
}

/* Whether the packet is of the side that began the flow */
static bool is_request(const struct hop *hop, const struct world *world)
{
	return (hop->from == PEER) != is_masqueraded(world);
}

static const uint8_t *destination_mac(const struct hop *hop)
{
	if (is_outward(hop))
		return host_neighbour_mac();
	return host_mac(hop->device == UPLINK ? UPLINK : BRIDGE);
}

/* turn: the number of the packet in this direction */
static void build_frame(struct frame *frame, const struct hop *hop, const struct world *world,
			int turn)
{
	bool request = is_request(hop, world), first = turn == 0;
	bool handshake = !world->udp && turn < 2;
	struct packet packet = {
		.protocol = world->udp ? IPPROTO_UDP : IPPROTO_TCP,
		.from = side_address(hop->from, world->ipv6),
		.from_port = side_port(hop->from, world),
		.to = side_address(hop->to, world->ipv6),
		.to_port = side_port(hop->to, world),
		.tcp_flags = first       ? SYN
			     : turn == 1 ? ACK
					 : ACK | PSH,
		.sequence = (request ? CLIENT_NUMBER : SERVER_NUMBER) + !first,
		.acknowledgment = (request ? SERVER_NUMBER : CLIENT_NUMBER) + 1,
		.payload = 64,
		.empty = handshake,
		.padding = handshake ? HEADERS_SIZE : 0,
	};
	uint8_t to_mac[MAC_SIZE];

	if (first && !request)
		packet.tcp_flags |= ACK;
	memcpy(to_mac, destination_mac(hop), MAC_SIZE);
	frame_build(frame, &packet, to_mac, host_neighbour_mac());
}

static void set_traffic(const struct subject *subject, const struct world *world,
			const struct hop *hop, const struct frame *frame)
{
	struct traffic *traffic = &driver->bss->traffic;
	size_t address = frame->network + (world->ipv6 ? 8 : 12);
	size_t size = world->ipv6 ? 16 : 4;
	uint32_t port = (uint32_t)frame->transport;

	memset(traffic, 0, sizeof(*traffic));
	memcpy(traffic->headers, frame->bytes, HEADERS_SIZE);
	if (hop->to == PEER)
		address += size;
	traffic->address_offset = (uint32_t)(address + size - 2);
	traffic->port_offset = port + (hop->to == PEER ? 2 : 0);
	if (is_masqueraded(world) && hop->to == HOST)
		traffic->own_port_offset = port + 2;
	traffic->flows = world->flows;
	traffic->passed_first = subject->number * most_flows;
	driver->bss->next_in_order = 0;
	driver->bss->flow_before = 0;
}

static void set_program(const struct subject *subject, const char *name)
{
	uint32_t index = 1;
	int fd;

	driver->bss->traffic.program = name ? index : 0;
	if (!name)
		return;
	fd = measured_program(subject->object, name);
	if (bpf_map_update_elem(bpf_map__fd(driver->maps.measured), &index, &fd, BPF_ANY))
		err(1, "choosing a program");
}

static uint32_t run(const struct frame *frame, const struct hop *hop, uint32_t repeat, int *verdict)
{
	struct __sk_buff context = {.ifindex = hop->device, .ingress_ifindex = hop->came_in_by};
	DECLARE_LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame->bytes,
			    .data_size_in = (uint32_t)frame->length, .ctx_in = &context,
			    .ctx_size_in = sizeof(context), .repeat = (int)repeat, );

	if (bpf_prog_test_run_opts(bpf_program__fd(driver->progs.next_packet), &options))
		err(1, "running %s", hop->program);
	*verdict = (int)options.retval;
	if (frame->length < HEADERS_SIZE)
		errx(1, "a frame too short to be written");
	return options.duration;
}

/* --- opening ---------------------------------------------------------------------------- */

static const struct hop from_outside[] = {{"from_uplink", UPLINK, UPLINK, PEER, HOST},
					  {"to_container", BRIDGE, UPLINK, PEER, CONTAINER}};
static const struct hop from_inside[] = {{"from_container", VETH_ONE, VETH_ONE, CONTAINER, PEER},
					 {"to_uplink", UPLINK, BRIDGE, CONTAINER, PEER}};

static void print_operations(const char *program, uint32_t packets)
{
	printf(" %-14s", program);
#define X(name) printf(" %s %.1f", #name, (double)operations->name / packets);
	OPERATIONS(X)
#undef X
	printf("\n");
}

/* Sends one packet of each flow from `first` on through both hops. The first flow's is repeated at
 * the end, because only the next packet shows what became of the last one. Returns whether they
 * skip the stack. */
static bool pass_way(const struct subject *subject, const struct world *world,
		     const struct hop *hops, uint32_t first, int turn)
{
	struct traffic *traffic = &driver->bss->traffic;
	uint32_t count = world->flows - first < BATCH ? world->flows - first : BATCH;
	int verdicts[2];

	for (int i = 0; i < 2; i++) {
		struct frame frame = {0};

		build_frame(&frame, &hops[i], world, turn);
		set_traffic(subject, world, &hops[i], &frame);
		set_program(subject, hops[i].program);
		traffic->in_order = 1;
		traffic->first = first;
		traffic->flows = count;
		traffic->passes_on = i == 0;
		traffic->goes_on = i == 1;
		if (i == 1 && is_masqueraded(world) && hops[i].to == PEER)
			traffic->passed_port_offset = (uint32_t)frame.transport;
		if (operations)
			memset(operations, 0, sizeof(*operations));
		run(&frame, &hops[i], count + 1, &verdicts[i]);
		/* A packet that has skipped the stack does not reach the second hook. */
		if (operations && (i == 0 || verdicts[0] != TC_ACT_REDIRECT)) {
			printf("  packet %d,", turn + 1);
			print_operations(hops[i].program, count + 1);
		}
	}
	return verdicts[0] == TC_ACT_REDIRECT;
}

/* Returns whether all skip the stack in both directions. */
static bool pass_turn(const struct subject *subject, const struct world *world, uint32_t first,
		      int turn)
{
	bool masqueraded = is_masqueraded(world);
	bool request =
		pass_way(subject, world, masqueraded ? from_inside : from_outside, first, turn);

	return pass_way(subject, world, masqueraded ? from_outside : from_inside, first, turn) &&
	       request;
}

/* Begins as many flows as there are half-open places, so that each later one evicts another. */
static void fill_half_open(struct subject *subject, const struct world *world)
{
	const struct hop *hop = is_masqueraded(world) ? &from_inside[1] : &from_outside[0];
	uint32_t places =
		bpf_map__max_entries(bpf_object__find_map_by_name(subject->object, "half_open"));
	int verdict;

	while (subject->fresh < places)
		traffic_measure_new(subject, world, hop, hop->program, &verdict);
}

void traffic_open(struct subject *subject, const struct world *world)
{
	bool fast = true;
	int turn;

	subject->opened = seconds_now();
	if (world->population >= NEW_MAPPINGS) {
		fill_half_open(subject, world);
		return;
	}
	for (uint32_t first = 0; first < world->flows; first += BATCH)
		for (turn = 0; turn < TURNS; turn++)
			pass_turn(subject, world, first, turn);
	/* Some decisions are made only once in a second. A flow whose turn in the stack has come
	 * skips it with its next packet: of many flows some have their turn in any second. */
	for (turn = TURNS; world_is_fast(world) && turn < MOST_TURNS; turn++) {
		fast = true;
		for (uint32_t first = 0; first < world->flows; first += BATCH)
			fast &= pass_turn(subject, world, first, turn) ||
				pass_turn(subject, world, first, turn);
		if (fast)
			return;
		usleep(1100000);
		subject->opened = seconds_now();
	}
	if (!fast)
		errx(1, "flows do not skip the IP stack");
}

void traffic_count(struct subject *subject, const struct world *world)
{
	operations = measured_variable(subject->object, ".bss", "operations");
	for (int turn = 0; turn < TURNS; turn++)
		pass_turn(subject, world, 0, turn);
	/* The first packets of another second */
	for (int turn = TURNS; world_is_fast(world) && turn < TURNS + 2; turn++) {
		usleep(1100000);
		pass_turn(subject, world, 0, turn);
	}
	operations = NULL;
}

bool traffic_is_stale(const struct subject *subject, const struct world *world)
{
	return world->udp && world_is_fast(world) && seconds_now() - subject->opened > STALE;
}

/* --- measuring -------------------------------------------------------------------------- */

static uint32_t between(uint32_t low, uint32_t value, uint32_t high)
{
	return value < low ? low : value > high ? high : value;
}

/* The first two turns do not count: they have the work that is done once a second for each flow. */
uint32_t traffic_measure(const struct subject *subject, const struct world *world,
			 const struct hop *hop, const char *program, int *verdict)
{
	struct traffic *traffic = &driver->bss->traffic;
	struct frame frame = {0};

	build_frame(&frame, hop, world, TURNS);
	set_traffic(subject, world, hop, &frame);
	set_program(subject, program);
	traffic->goes_on = world->population == FAST_SENT;
	traffic->in_order = 1;
	run(&frame, hop, 2 * between(100, world->flows, 100000), verdict);
	traffic->in_order = 0;
	return run(&frame, hop, between(20000, 2 * world->flows, 100000), verdict);
}

/* In the map meta the secret is 0. */
static void set_seal(struct traffic *traffic, const struct frame *frame)
{
	const uint8_t *ip = frame->bytes + frame->network;
	uint8_t *sender = (uint8_t *)traffic->sender;

	traffic->seal_key = 0x7365616c; /* SEAL_DOMAIN */
	traffic->protocol = (uint32_t)frame->protocol;
	if (frame->ipv4) {
		memset(sender, 0, 10);
		memset(sender + 10, 0xff, 2);
		memcpy(sender + 12, ip + 12, 4);
	} else {
		memcpy(sender, ip + 8, sizeof(traffic->sender));
	}
}

uint32_t traffic_measure_new(struct subject *subject, const struct world *world,
			     const struct hop *hop, const char *program, int *verdict)
{
	struct traffic *traffic = &driver->bss->traffic;
	struct frame frame = {0};

	build_frame(&frame, hop, world, 0);
	set_traffic(subject, world, hop, &frame);
	set_program(subject, program);
	traffic->in_order = 1;
	traffic->first = subject->fresh;
	if (is_masqueraded(world)) {
		traffic->few_servers = 1;
		traffic->port_offset = (uint32_t)frame.transport;
	}
	if (is_outward(hop))
		set_seal(traffic, &frame);
	if (program)
		subject->fresh += world->flows;
	return run(&frame, hop, world->flows, verdict);
}

void traffic_count_hop(const struct subject *subject, const struct world *world,
		       const struct hop *hop)
{
	struct frame frame = {0};
	int verdict;

	operations = measured_variable(subject->object, ".bss", "operations");
	build_frame(&frame, hop, world, TURNS);
	set_traffic(subject, world, hop, &frame);
	set_program(subject, hop->program);
	memset(operations, 0, sizeof(*operations));
	run(&frame, hop, COUNTED, &verdict);
	print_operations(hop->program, COUNTED);
	operations = NULL;
}
