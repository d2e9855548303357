/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * packet_fuzz.c - runs the real programs on random packets, and compares with an oracle.
 *
 * usage: packet_fuzz SECONDS [SEED [SEQUENCE [END]]]
 *
 * A sequence is a few packets on random maps; some answer earlier ones or are errors about them.
 * Seed and number of a sequence repeat it, except for the ports that the programs choose; with END
 * the following sequences up to it run too.
 */
#include <err.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "../packet/host.h"
#include "generator.h"
#include "random.h"
#include "report.h"
#include "verify.h"

static struct world world;
static struct history history;
static uint64_t sent;  /* past the IP stack */
static uint64_t begun; /* connections */
static uint64_t executions;
static uint64_t refused;
static uint64_t answered[ANSWERS];

static void remember(const struct visit *visit, const struct outcome *outcome)
{
	struct passage *passage = &history.passages[history.count++ % HISTORY];

	passage->hook = visit->hook;
	passage->device = visit->device;
	passage->in = visit->frame;
	passage->out = outcome->frame;
	if (outcome->verdict == 2)
		passage->out.length = 0;
}

static void read_fragment(const struct visit *visit)
{
	struct fragment_key key;

	if (visit->wire.kind != WIRE_FRAGMENT && !visit->wire.first_fragment)
		return;
	oracle_fragment_key(visit, &key);
	machine_read_fragment(&world, &key);
}

/* NULL: all is right. */
static const char *judge(const struct visit *visit, struct expectation *expected,
			 struct outcome *outcome, const struct world *before)
{
	const char *wrong = verify_tables(before, &world);

	if (!wrong)
		wrong = verify_invariants(before, visit, outcome);
	if (!wrong)
		wrong = verify_sent(before, visit, expected, outcome);
	if (!wrong && !expected->unsure)
		wrong = verify_outcome(before, visit, expected, outcome);
	if (!wrong && !expected->unsure)
		wrong = verify_fragment(&world, expected);
	return wrong ? wrong : verify_records(before, &world, expected);
}

static const char *step(struct visit *visit, struct expectation *expected, struct outcome *outcome,
			struct world *before)
{
	world.now = machine_now();
	read_fragment(visit);
	oracle_ask(&world, visit, expected);
	/* It is dropped if its port changes, which the oracle cannot predict. */
	if (visit->wire.first_fragment && visit->wire.outer.protocol == IPPROTO_SCTP)
		expected->unsure = true;
	expected->unsure |= world.with_paths;
	*before = world;
	outcome->frame = visit->frame;
	outcome->verdict = machine_run(visit->hook, visit->device, visit->came_in_by,
				       visit->verified, &outcome->frame);
	if (outcome->verdict == MACHINE_REFUSED) {
		refused++;
		return NULL;
	}
	executions++;
	answered[expected->answer]++;
	machine_read(&world);
	if (machine_now() != world.now) /* the second has changed during the run */
		return verify_tables(before, &world);
	read_fragment(visit);
	sent += outcome->verdict == 7 && world.with_paths;
	begun += expected->begins;
	return judge(visit, expected, outcome, before);
}

/* Why packets were dropped: the program alone knows. */
static void report_counted(const struct counters *before)
{
	struct counters now;

	machine_counts(&now);
	printf("counted in this sequence:");
#define PRINT_CHANGE(name, meaning) \
	if (now.name != before->name) \
		printf(" %s %llu", #name, (unsigned long long)(now.name - before->name));
	COUNTERS(PRINT_CHANGE)
	printf("\n");
}

static int run_sequence(uint64_t seed, uint64_t sequence)
{
	static struct counters counted;
	static struct world before;
	static struct visit visit;
	static struct expectation expected;
	static struct outcome outcome;
	const char *wrong = NULL;
	uint32_t number = 0, steps;

	random_seed(seed * 0x100000001b3 + sequence);
	generator_world(&world);
	machine_write(&world);
	machine_counts(&counted);
	history.count = 0;
	steps = 1 + random_below(24);
	for (; number < steps && !wrong; number++) {
		generator_visit(&world, &history, &visit);
		wrong = step(&visit, &expected, &outcome, &before);
		remember(&visit, &outcome);
	}
	if (!wrong)
		wrong = verify_hashed_counts(&world);
	if (!wrong)
		return 0;
	printf("FAILED: %s\nrepeat with: packet_fuzz 1 %llu %llu; packet %u\n", wrong,
	       (unsigned long long)seed, (unsigned long long)sequence, number);
	report_world(&before);
	report_packet(&visit, &expected, &outcome);
	report_changes(&before, &world);
	report_counted(&counted);
	return -1;
}

static void open_sockets(void)
{
	for (const struct host_socket *socket = world_sockets; socket->address; socket++)
		host_open_socket(socket);
}

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static uint64_t any_seed(void)
{
	uint32_t seed;

	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		err(1, "getrandom");
	return seed;
}

/* The counters that moved, and those that did not. */
static void print_counts(void)
{
	struct counters counts;

	machine_counts(&counts);
#define PRINT(name, meaning) \
	if (counts.name) \
		printf("%s %llu, ", #name, (unsigned long long)counts.name);
	COUNTERS(PRINT)
	printf("never:");
#define PRINT_NONE(name, meaning) \
	if (!counts.name) \
		printf(" %s", #name);
	COUNTERS(PRINT_NONE)
	printf("\n");
}

int main(int argc, char **argv)
{
	double wanted = argc > 1 ? atof(argv[1]) : 10;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : any_seed();
	uint64_t sequence = argc > 3 ? strtoull(argv[3], NULL, 0) : 0;
	uint64_t end = argc > 4 ? strtoull(argv[4], NULL, 0) : sequence + 1;
	double start, took;

	host_create();
	open_sockets();
	machine_load();
	start = seconds_now();
	do {
		if (run_sequence(seed, sequence++))
			return 1;
		took = seconds_now() - start;
	} while (argc > 3 ? sequence < end : took < wanted);
	print_counts();
	printf("packets: %llu executions, %.0f/s, %llu sequences, seed %llu (%llu passed, %llu "
	       "dropped, %llu translated, %llu lifted, %llu sent on, %llu connections begun)\n",
	       (unsigned long long)executions, (double)executions / took,
	       (unsigned long long)sequence, (unsigned long long)seed,
	       (unsigned long long)answered[ANSWER_PASS], (unsigned long long)answered[ANSWER_DROP],
	       (unsigned long long)answered[ANSWER_TRANSLATE],
	       (unsigned long long)answered[ANSWER_LIFT], (unsigned long long)sent,
	       (unsigned long long)begun);
	return 0;
}
