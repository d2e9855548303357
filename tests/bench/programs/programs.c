/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * programs.c - what a packet costs in each of the programs: ns, by BPF_PROG_TEST_RUN, each
 * packet of another flow at random. With two objects: both, in turns, on one machine with the
 * same noise.
 */
#include <bpf/bpf.h>
#include <err.h>
#include <getopt.h>
#include <linux/bpf.h>
#include <linux/types.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measured.h"
#include "packet/frame.h"
#include "programs.h"
#include "tests/programs.skel.h"

#define OBJECTS 2
#define MAX_ROUNDS 101
#define MAX_COUNTS 8
#define MOST_WITHOUT_FLOWS 100000
#define TC_INDEX_SENT 0x6251
#define TC_ACT_REDIRECT 7

struct row {
	enum population population;
	const char *program;
	const char *says;
	enum device device, came_in_by;
	enum side from, to;
	uint32_t tc_index;
};

static const struct row rows[] = {
	{MAPPINGS, "from_uplink", "to a mapped port", UPLINK, UPLINK, PEER, HOST, 0},
	{MAPPINGS, "to_container", "to a mapped port", BRIDGE, UPLINK, PEER, CONTAINER, 0},
	{MAPPINGS, "from_container", "answer", VETH_ONE, VETH_ONE, CONTAINER, PEER, 0},
	{MAPPINGS, "to_uplink", "answer", UPLINK, BRIDGE, CONTAINER, PEER, 0},
	{MASQUERADES, "from_container", "masqueraded", VETH_ONE, VETH_ONE, CONTAINER, PEER, 0},
	{MASQUERADES, "to_uplink", "masqueraded", UPLINK, BRIDGE, CONTAINER, PEER, 0},
	{MASQUERADES, "from_uplink", "answer to masqueraded", UPLINK, UPLINK, PEER, HOST, 0},
	{MASQUERADES, "to_container", "answer to masqueraded", BRIDGE, UPLINK, PEER, CONTAINER, 0},
	{FAST_MAPPINGS, "from_uplink", "to a mapped port, past the stack", UPLINK, UPLINK, PEER,
	 HOST, 0},
	{FAST_MAPPINGS, "from_container", "answer, past the stack", VETH_ONE, VETH_ONE, CONTAINER,
	 PEER, 0},
	{FAST_MASQUERADES, "from_container", "masqueraded, past the stack", VETH_ONE, VETH_ONE,
	 CONTAINER, PEER, 0},
	{FAST_MASQUERADES, "from_uplink", "answer to masqueraded, past the stack", UPLINK, UPLINK,
	 PEER, HOST, 0},
	{NO_FLOWS, "to_uplink", "sent by the fast path", UPLINK, VETH_ONE, HOST, PEER,
	 TC_INDEX_SENT},
	{NO_FLOWS, "from_uplink", "to the host", UPLINK, UPLINK, PEER, HOST, 0},
	{NO_FLOWS, "to_uplink", "of the host", UPLINK, 0, HOST, PEER, 0},
	{NO_FLOWS, "from_uplink", "forwarded", UPLINK, UPLINK, PEER, ELSEWHERE, 0},
	{NO_FLOWS, "to_uplink", "forwarded", UPLINK, SECOND_UPLINK, ELSEWHERE, PEER, 0},
	{NO_FLOWS, "from_container", "not masqueraded", VETH_QUIET, VETH_QUIET, QUIET, PEER, 0},
	{NO_FLOWS, "to_uplink", "not masqueraded", UPLINK, BRIDGE, QUIET, PEER, 0},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static const char *paths[OBJECTS];
static int objects;
static int rounds = 9;
static bool json;
static const char *only = "";
static struct programs_bpf *driver;

static bool is_outward(const struct row *row)
{
	return row->program[0] == 't';
}

static const uint8_t *destination_mac(const struct row *row)
{
	if (is_outward(row))
		return host_neighbour_mac();
	return host_mac(row->device == UPLINK ? UPLINK : BRIDGE);
}

static void build_frame(struct frame *frame, const struct row *row, const struct world *world)
{
	struct packet packet = {
		.protocol = world->udp ? IPPROTO_UDP : IPPROTO_TCP,
		.from = side_address(row->from, world->ipv6),
		.from_port = side_port(row->from, world),
		.to = side_address(row->to, world->ipv6),
		.to_port = side_port(row->to, world),
		.tcp_flags = ACK | PSH,
		.payload = 64,
	};
	uint8_t to_mac[MAC_SIZE];

	memcpy(to_mac, destination_mac(row), MAC_SIZE);
	frame_build(frame, &packet, to_mac, host_neighbour_mac());
}

static void set_traffic(const struct frame *frame, const struct row *row, const struct world *world)
{
	struct traffic *traffic = &driver->bss->traffic;
	size_t address = frame->network + (world->ipv6 ? 8 : 12);
	size_t size = world->ipv6 ? 16 : 4;

	memcpy(traffic->headers, frame->bytes, HEADERS_SIZE);
	if (row->to == PEER)
		address += size;
	traffic->address_offset = (uint32_t)(address + size - 2);
	traffic->port_offset = (uint32_t)frame->transport + (row->to == PEER ? 2 : 0);
	traffic->flows = world->flows;
	traffic->tc_index = row->tc_index;
}

static bool is_fast(const struct row *row)
{
	return row->population == FAST_MAPPINGS || row->population == FAST_MASQUERADES;
}

static uint32_t run(const struct frame *frame, const struct row *row, uint32_t repeat)
{
	struct __sk_buff context = {.ifindex = row->device, .ingress_ifindex = row->came_in_by};
	DECLARE_LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame->bytes,
			    .data_size_in = (uint32_t)frame->length, .ctx_in = &context,
			    .ctx_size_in = sizeof(context), .repeat = (int)repeat, );

	if (bpf_prog_test_run_opts(bpf_program__fd(driver->progs.next_packet), &options))
		err(1, "running %s", row->program);
	if (driver->bss->traffic.program && (options.retval == TC_ACT_REDIRECT) != is_fast(row))
		errx(1, "%s: the last packet takes another way (%d)", row->says,
		     (int)options.retval);
	return options.duration;
}

static uint32_t between(uint32_t low, uint32_t value, uint32_t high)
{
	return value < low ? low : value > high ? high : value;
}

/* What is done once a second a flow is done in the first two turns, which do not count. */
static uint32_t measure(const struct row *row, const struct world *world, uint32_t program)
{
	struct traffic *traffic = &driver->bss->traffic;
	struct frame frame = {0};

	build_frame(&frame, row, world);
	set_traffic(&frame, row, world);
	traffic->program = program;
	traffic->in_order = 1;
	run(&frame, row, 2 * between(100, world->flows, 100000));
	traffic->in_order = 0;
	return run(&frame, row, between(20000, 2 * world->flows, 100000));
}

static int compare(const void *a, const void *b)
{
	double difference = *(const double *)a - *(const double *)b;

	return (difference > 0) - (difference < 0);
}

static double median(double *values, int count)
{
	qsort(values, (size_t)count, sizeof(*values), compare);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static void row_name(char *name, size_t size, const struct row *row, const struct world *world)
{
	snprintf(name, size, "%s %s %s %s", row->program, world->ipv6 ? "ipv6" : "ipv4",
		 world->udp ? "udp" : "tcp", row->says);
}

static bool row_is_wanted(const struct row *row, const struct world *world)
{
	char name[128];

	row_name(name, sizeof(name), row, world);
	return row->population == world->population && strstr(name, only);
}

/* Samples of every row, round and object: with the program, and with nothing in its place. */
static double with[ROWS][OBJECTS][MAX_ROUNDS], without[ROWS][OBJECTS][MAX_ROUNDS];

/* The lowest is nearly free of what else the machine does. */
struct result {
	double median, lowest;
};

static struct result result_of(size_t row, int object)
{
	struct result result;

	result.median = median(with[row][object], rounds) - median(without[row][object], rounds);
	result.lowest = with[row][object][0] - without[row][object][0]; /* in order by now */
	return result;
}

static void print_json(const char *name, uint32_t flows, const struct result *results)
{
	const struct result *last = &results[objects - 1];

	printf("{\"name\": \"%s\", \"flows\": %u, \"ns\": %.0f, \"lowest_ns\": %.0f", name, flows,
	       last->median, last->lowest);
	if (objects == 2)
		printf(", \"base_ns\": %.0f, \"base_lowest_ns\": %.0f", results[0].median,
		       results[0].lowest);
	printf("}\n");
}

static void print_row(size_t index, const struct world *world)
{
	struct result results[OBJECTS];
	char name[128];

	row_name(name, sizeof(name), &rows[index], world);
	for (int i = 0; i < objects; i++)
		results[i] = result_of(index, i);
	if (json) {
		print_json(name, world->flows, results);
	} else {
		printf("%-48s %8u", name, world->flows);
		for (int i = 0; i < objects; i++)
			printf(" %6.0f (%.0f)", results[i].median, results[i].lowest);
		if (objects == 2)
			printf(" %+6.0f (%+.0f)", results[1].median - results[0].median,
			       results[1].lowest - results[0].lowest);
		printf("\n");
	}
	fflush(stdout);
}

static void set_program(uint32_t index, int fd)
{
	if (bpf_map_update_elem(bpf_map__fd(driver->maps.measured), &index, &fd, BPF_ANY))
		err(1, "choosing a program");
}

/* Every row of this world once, each object in turn. Index 0 is `nothing`. */
static void measure_round(const struct world *world, struct bpf_object **loaded, int round)
{
	for (size_t i = 0; i < ROWS; i++) {
		if (!row_is_wanted(&rows[i], world))
			continue;
		for (int k = 0; k < objects; k++) {
			int object = (k + round) % objects; /* nobody is always the first */

			set_program(1, measured_program(loaded[object], rows[i].program));
			without[i][object][round] = measure(&rows[i], world, 0);
			with[i][object][round] = measure(&rows[i], world, 1);
		}
	}
}

static void measure_world(const struct world *world)
{
	struct bpf_object *loaded[OBJECTS];
	bool wanted = false;

	for (size_t i = 0; i < ROWS; i++)
		wanted |= row_is_wanted(&rows[i], world);
	if (!wanted || (world->population == NO_FLOWS && world->flows > MOST_WITHOUT_FLOWS))
		return;
	for (int i = 0; i < objects; i++)
		loaded[i] = measured_load(paths[i], world);
	for (int round = 0; round < rounds; round++)
		measure_round(world, loaded, round);
	for (size_t i = 0; i < ROWS; i++)
		if (row_is_wanted(&rows[i], world))
			print_row(i, world);
	for (int i = 0; i < objects; i++)
		bpf_object__close(loaded[i]);
}

static void measure_all(uint32_t flows)
{
	struct world world = {.flows = flows};

	for (world.population = MAPPINGS; world.population <= NO_FLOWS; world.population++)
		for (int kind = 0; kind < 4; kind++) {
			world.ipv6 = kind >= 2;
			world.udp = kind % 2 == 0;
			measure_world(&world);
		}
}

static _Noreturn void usage(void)
{
	fprintf(stderr, "programs [--json] [--rounds N] [--flows N,N...] [--only WORDS] "
			"[OBJECT.bpf.o [OTHER.bpf.o]]\n");
	exit(2);
}

static int parse_counts(char *text, uint32_t *counts)
{
	int count = 0;

	for (char *word = strtok(text, ","); word; word = strtok(NULL, ",")) {
		if (count == MAX_COUNTS || atoi(word) < 1)
			usage();
		counts[count++] = (uint32_t)atoi(word);
	}
	return count;
}

static int parse_options(int argc, char **argv, uint32_t *counts)
{
	static const struct option options[] = {{"json", no_argument, NULL, 'j'},
						{"rounds", required_argument, NULL, 'r'},
						{"flows", required_argument, NULL, 'f'},
						{"only", required_argument, NULL, 'o'},
						{0}};
	static char usual[] = "1,1000,30000,1000000";
	int option, count = parse_counts(usual, counts);

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'j')
			json = true;
		else if (option == 'r')
			rounds = (int)between(1, (uint32_t)atoi(optarg), MAX_ROUNDS);
		else if (option == 'f')
			count = parse_counts(optarg, counts);
		else if (option == 'o')
			only = optarg;
		else
			usage();
	}
	while (optind < argc && objects < OBJECTS)
		paths[objects++] = argv[optind++];
	if (optind < argc)
		usage();
	if (objects == 0)
		paths[objects++] = "build/bpf/portmap.bpf.o";
	return count;
}

int main(int argc, char **argv)
{
	uint32_t counts[MAX_COUNTS];
	int count = parse_options(argc, argv, counts);

	host_create();
	host_configure("neigh replace " v4_container_one " lladdr 02:00:00:00:01:13 dev bridge0\n"
		       "neigh replace " v6_container_one " lladdr 02:00:00:00:01:13 dev bridge0\n");
	driver = programs_bpf__open_and_load();
	if (!driver)
		err(1, "loading the generator of packets");
	set_program(0, bpf_program__fd(driver->progs.nothing));
	for (int i = 0; i < count; i++)
		measure_all(counts[i]);
	programs_bpf__destroy(driver);
	return 0;
}
