/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * programs.c - measures what a packet costs in each of the programs, in ns, by BPF_PROG_TEST_RUN.
 * Each packet is of a random flow, which earlier packets have opened, or begins a new one. Two
 * objects are measured in turns, so that other load affects both alike.
 */
#include <err.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measured.h"
#include "traffic.h"

#define OBJECTS 2
#define MAX_ROUNDS 101
#define MAX_COUNTS 8
#define MOST_WITHOUT_FLOWS 100000
#define MOST_TRIES 5
#define TC_ACT_SHOT 2
#define TC_ACT_REDIRECT 7

struct row {
	enum population population;
	const char *says;
	struct hop hop;
};

static const struct row rows[] = {
	{MAPPINGS, "to a mapped port", {"from_uplink", UPLINK, UPLINK, PEER, HOST}},
	{MAPPINGS, "to a mapped port", {"to_container", BRIDGE, UPLINK, PEER, CONTAINER}},
	{MAPPINGS, "answer", {"from_container", VETH_ONE, VETH_ONE, CONTAINER, PEER}},
	{MAPPINGS, "answer", {"to_uplink", UPLINK, BRIDGE, CONTAINER, PEER}},
	{MASQUERADES, "masqueraded", {"from_container", VETH_ONE, VETH_ONE, CONTAINER, PEER}},
	{MASQUERADES, "masqueraded", {"to_uplink", UPLINK, BRIDGE, CONTAINER, PEER}},
	{MASQUERADES, "answer to masqueraded", {"from_uplink", UPLINK, UPLINK, PEER, HOST}},
	{MASQUERADES, "answer to masqueraded", {"to_container", BRIDGE, UPLINK, PEER, CONTAINER}},
	{FAST_MAPPINGS,
	 "to a mapped port, past the stack",
	 {"from_uplink", UPLINK, UPLINK, PEER, HOST}},
	{FAST_MAPPINGS,
	 "answer, past the stack",
	 {"from_container", VETH_ONE, VETH_ONE, CONTAINER, PEER}},
	{FAST_SENT, "sent by the fast path", {"to_uplink", UPLINK, VETH_ONE, HOST, PEER}},
	{FAST_MASQUERADES,
	 "masqueraded, past the stack",
	 {"from_container", VETH_ONE, VETH_ONE, CONTAINER, PEER}},
	{FAST_MASQUERADES,
	 "answer to masqueraded, past the stack",
	 {"from_uplink", UPLINK, UPLINK, PEER, HOST}},
	{NO_FLOWS, "to the host", {"from_uplink", UPLINK, UPLINK, PEER, HOST}},
	{NO_FLOWS, "of the host", {"to_uplink", UPLINK, 0, HOST, PEER}},
	{NO_FLOWS, "forwarded", {"from_uplink", UPLINK, UPLINK, PEER, ELSEWHERE}},
	{NO_FLOWS, "forwarded", {"to_uplink", UPLINK, SECOND_UPLINK, ELSEWHERE, PEER}},
	{NO_FLOWS, "not masqueraded", {"from_container", VETH_QUIET, VETH_QUIET, QUIET, PEER}},
	{NO_FLOWS, "not masqueraded", {"to_uplink", UPLINK, BRIDGE, QUIET, PEER}},
	{NEW_MAPPINGS, "to a mapped port, new", {"from_uplink", UPLINK, UPLINK, PEER, HOST}},
	{NEW_MASQUERADES,
	 "masqueraded, new",
	 {"from_container", VETH_ONE, VETH_ONE, CONTAINER, PEER}},
	{NEW_MASQUERADES, "masqueraded, new", {"to_uplink", UPLINK, BRIDGE, CONTAINER, PEER}},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static const char *paths[OBJECTS];
static int objects;
static int rounds = 9;
static bool json;
static bool counts_operations;
static enum crowd crowd;
static const char *only = "";

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
	snprintf(name, size, "%s %s %s %s", row->hop.program, world->ipv6 ? "ipv6" : "ipv4",
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

/* The lowest value is hardly affected by other load on the machine. */
struct result {
	double median, lowest;
};

static struct result result_of(size_t row, int object)
{
	struct result result;

	result.median = median(with[row][object], rounds) - median(without[row][object], rounds);
	result.lowest = with[row][object][0] - without[row][object][0]; /* sorted by median() */
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

static void subject_renew(struct subject *subject, const struct world *world)
{
	bpf_object__close(subject->object);
	subject->object =
		measured_load(paths[subject->number], world, subject->number ? crowd : NO_CROWD);
	if (world->population != NO_FLOWS)
		traffic_open(subject, world);
}

static bool row_is_fast(const struct row *row)
{
	return row->population == FAST_MAPPINGS || row->population == FAST_MASQUERADES;
}

/* Once with the program and once with `nothing` in its place. If a busy machine takes so long that
 * flows are shown to the IP stack again, all is repeated. */
static void measure(size_t index, const struct world *world, struct subject *subject, int round)
{
	const struct row *row = &rows[index];
	int verdict = 0;

	if (row->population > NO_FLOWS) {
		without[index][subject->number][round] =
			traffic_measure_new(subject, world, &row->hop, NULL, &verdict);
		with[index][subject->number][round] =
			traffic_measure_new(subject, world, &row->hop, row->hop.program, &verdict);
		if (verdict == TC_ACT_SHOT)
			errx(1, "%s: the last packet was dropped", row->says);
		return;
	}
	for (int tries = 0; tries < MOST_TRIES; tries++) {
		if (traffic_is_stale(subject, world))
			subject_renew(subject, world);
		without[index][subject->number][round] =
			traffic_measure(subject, world, &row->hop, NULL, &verdict);
		with[index][subject->number][round] =
			traffic_measure(subject, world, &row->hop, row->hop.program, &verdict);
		if ((verdict == TC_ACT_REDIRECT) == row_is_fast(row))
			return;
		subject->opened = 0;
	}
	errx(1, "%s: the last packet has a different verdict (%d)", row->says, verdict);
}

/* Every row of this world once, each object in turn. */
static void measure_round(const struct world *world, struct subject *subjects, int round)
{
	for (size_t i = 0; i < ROWS; i++) {
		if (!row_is_wanted(&rows[i], world))
			continue;
		for (int k = 0; k < objects; k++) /* each object is the first in turn */
			measure(i, world, &subjects[(k + round) % objects], round);
	}
}

/* Counts for the first packets of flows. */
static void count_world(const struct world *world)
{
	static const char *const names[] = {"mapped", "masqueraded", "mapped, past the stack",
					    "masqueraded, past the stack"};
	struct subject subject = {0};

	subject.object = measured_load(paths[0], world, NO_CROWD);
	if (world->population < FAST_SENT) {
		printf("ipv%d %s %s\n", world->ipv6 ? 6 : 4, world->udp ? "udp" : "tcp",
		       names[world->population]);
		traffic_count(&subject, world);
	}
	for (size_t i = 0; i < ROWS && world->population == NO_FLOWS; i++) {
		if (rows[i].population != NO_FLOWS)
			continue;
		printf("ipv%d %s %-16s", world->ipv6 ? 6 : 4, world->udp ? "udp" : "tcp",
		       rows[i].says);
		traffic_count_hop(&subject, world, &rows[i].hop);
	}
	bpf_object__close(subject.object);
}

static void measure_world(const struct world *world)
{
	struct subject subjects[OBJECTS] = {{.number = 0}, {.number = 1}};
	bool wanted = false;

	for (size_t i = 0; i < ROWS; i++)
		wanted |= row_is_wanted(&rows[i], world);
	if (!wanted || (world->population == NO_FLOWS && world->flows > MOST_WITHOUT_FLOWS))
		return;
	for (int i = 0; i < objects; i++)
		subject_renew(&subjects[i], world);
	for (int round = 0; round < rounds; round++)
		measure_round(world, subjects, round);
	for (size_t i = 0; i < ROWS; i++)
		if (row_is_wanted(&rows[i], world))
			print_row(i, world);
	for (int i = 0; i < objects; i++)
		bpf_object__close(subjects[i].object);
}

static void measure_all(uint32_t flows)
{
	struct world world = {.flows = flows};

	for (world.population = MAPPINGS; world.population <= NEW_MASQUERADES; world.population++)
		for (int kind = 0; kind < 4; kind++) {
			world.ipv6 = kind >= 2;
			world.udp = kind % 2 == 0;
			if (counts_operations)
				count_world(&world);
			else
				measure_world(&world);
		}
}

static _Noreturn void usage(void)
{
	fprintf(stderr,
		"programs [--json] [--rounds N] [--flows N,N...] [--only WORDS] "
		"[OBJECT.bpf.o [OTHER.bpf.o] | --crowd[=ports] OBJECT.bpf.o]\n"
		"--crowd: once more beside 1,000 containers and 10,000 mappings, after each\n"
		"  port and address has been used; =ports: and other flows have each port\n"
		"--count counted.bpf.o: look-ups, insertions and deletions instead\n");
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

static int parse_rounds(const char *text)
{
	int count = atoi(text);

	return count < 1 ? 1 : count > MAX_ROUNDS ? MAX_ROUNDS : count;
}

static int parse_options(int argc, char **argv, uint32_t *counts)
{
	static const struct option options[] = {{"json", no_argument, NULL, 'j'},
						{"rounds", required_argument, NULL, 'r'},
						{"flows", required_argument, NULL, 'f'},
						{"only", required_argument, NULL, 'o'},
						{"crowd", optional_argument, NULL, 'c'},
						{"count", no_argument, NULL, 'n'},
						{0}};
	static char usual[] = "1,1000,30000,100000";
	int option, count = parse_counts(usual, counts);

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'j')
			json = true;
		else if (option == 'r')
			rounds = parse_rounds(optarg);
		else if (option == 'f')
			count = parse_counts(optarg, counts);
		else if (option == 'o')
			only = optarg;
		else if (option == 'c')
			crowd = optarg ? CROWD_AT_PORTS : CROWD_ENDED;
		else if (option == 'n')
			counts_operations = true;
		else
			usage();
	}
	while (optind < argc && objects < OBJECTS)
		paths[objects++] = argv[optind++];
	if (optind < argc)
		usage();
	if (objects == 0)
		paths[objects++] = "build/bpf/portmap.bpf.o";
	if (crowd && objects == 2)
		usage();
	if (crowd) {
		paths[1] = paths[0];
		objects = 2;
	}
	return count;
}

int main(int argc, char **argv)
{
	uint32_t counts[MAX_COUNTS], most = 0;
	int count = parse_options(argc, argv, counts);

	host_create();
	host_configure("neigh replace " v4_container_one " lladdr 02:00:00:00:01:13 dev bridge0\n"
		       "neigh replace " v6_container_one " lladdr 02:00:00:00:01:13 dev bridge0\n");
	for (int i = 0; i < count; i++)
		most = counts[i] > most ? counts[i] : most;
	traffic_prepare((uint32_t)objects, most);
	for (int i = 0; i < count; i++)
		measure_all(counts[i]);
	traffic_end();
	return 0;
}
