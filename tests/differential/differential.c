/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * differential.c - the same random packets, sockets and events in two worlds, one with the
 * reference plugins and one with ours; what arrives anywhere is compared. README.md has more.
 */
#include <sched.h>
#include <signal.h>

#include "../net/tool.h"
#include "flow.h"

const char tool_usage[] =
	"usage: differential --script world.sh --near DEVICE --far DEVICE   (a veth for barriers)\n"
	"  --seed N       of the first episode; each has the next one (1)\n"
	"  --steps N      of an episode (400)\n"
	"  --seconds N    how long to begin further episodes (0: as --episodes says)\n"
	"  --episodes N   how many episodes, whatever the machine's pace (1)\n"
	"  --only LIST    these steps of it only: 3,17,20\n"
	"  --shrink N     for how many seconds to leave out steps of what failed (0)\n"
	"  --inspect CMD  which the hosts run after each step that is printed\n"
	"  --verbose 1    prints all steps\n";

#define MAX_STEPS 5000
#define MAX_REASONS 32
#define EVENTS 4 /* percent */

static int seed = 1, steps = 400, seconds, most_episodes = 1, shrink_seconds, verbose;
static const char *script, *near, *far, *only, *inspect;
static bool chosen[MAX_STEPS];
static long steps_made, episodes;
static struct {
	const char *why;
	long count;
} reasons[MAX_REASONS];

static void count_reason(const char *why)
{
	int i = 0;

	while (reasons[i].why && strcmp(reasons[i].why, why))
		i++;
	reasons[i].why = why;
	reasons[i].count++;
}

static void print_arrivals(void)
{
	for (int which = 0; which < WORLDS; which++)
		for (size_t i = 0; i < worlds[which].count; i++)
			if (worlds[which].arrivals[i].text[0])
				printf("    %-8s %s\n", world_names[which],
				       worlds[which].arrivals[i].text);
}

static void print_difference(const struct difference *difference)
{
	for (int which = 0; which < WORLDS; which++)
		for (size_t i = 0; i < difference->count[which]; i++)
			printf("    only %-8s %s\n", world_names[which],
			       difference->only[which][i]->text);
}

/* Until nobody answers any more */
static void watch(struct step *step)
{
	size_t seen[WORLDS] = {0};
	bool more = true;

	for (int round = 0; more && round < 8; round++) {
		worlds_settle();
		more = false;
		for (int which = 0; which < WORLDS; which++) {
			more = observe(step, (enum which_world)which, seen[which]) || more;
			more = host_collect((enum which_world)which, step) || more;
			seen[which] = worlds[which].count;
		}
	}
}

static void one_step(struct step *step, uint64_t episode_seed, unsigned number)
{
	memset(step, 0, sizeof(*step));
	step->number = number;
	step->invalid = -world_counter(&worlds[REFERENCE], COUNTER_INVALID);
	for (int which = 0; which < WORLDS; which++) {
		worlds[which].count = worlds[which].fragments_count = 0;
		step->refused[which] = -world_counter(&worlds[which], COUNTER_REFUSED);
	}
	random_begin(episode_seed, number);
	if (!random_chance(EVENTS)) {
		step_make(step);
	} else if (!event_make(step)) {
		fprintf(stderr, "differential: %s failed\n", step->text);
		exit(EXIT_USAGE);
	}
	if (!step->text[0])
		return;
	steps_made++;
	watch(step);
	step->invalid += world_counter(&worlds[REFERENCE], COUNTER_INVALID);
	for (int which = 0; which < WORLDS; which++)
		step->refused[which] += world_counter(&worlds[which], COUNTER_REFUSED);
	step->unserved = step->flow && unserved_before(step->flow);
	unserved_note(step);
}

enum verdict { SAME, WANTED, DIFFERENT };

/* A flow that has gone different ways is left alone from then on. */
static enum verdict judge(const struct step *step, bool prints)
{
	struct difference difference;
	bool same = compare(&difference, step);
	const char *why = same ? "" : wanted(&difference);

	if (prints) {
		printf("step %u: %s%s\n", step->number, step->text,
		       step->invalid ? " (INVALID for conntrack)" : "");
		print_arrivals();
		fflush(stdout);
		if (inspect)
			worlds_command(inspect);
	}
	if (same)
		return SAME;
	if (prints) {
		printf("  %s%s\n", why ? "as expected: " : "DIFFERENT", why ? why : "");
		print_difference(&difference);
	}
	if (why)
		count_reason(why);
	if (step->flow)
		step->flow->quarantined = true;
	return why ? WANTED : DIFFERENT;
}

/* Returns the step with a difference that is not wanted, or -1. */
static int episode(uint64_t episode_seed, int count, bool prints)
{
	static struct step step;
	int found = -1;

	flows_forget();
	events_forget();
	unserved_forget();
	if (!worlds_make(script)) {
		fprintf(stderr, "differential: the worlds cannot be made\n");
		exit(EXIT_USAGE);
	}
	for (int which = 0; which < WORLDS; which++)
		host_open(&worlds[which]);
	for (int number = 0; found < 0 && number < count; number++) {
		if (!chosen[number])
			continue;
		one_step(&step, episode_seed, (unsigned)number);
		if (!step.text[0])
			continue;
		if (judge(&step, prints) == DIFFERENT)
			found = number;
	}
	if (!worlds_command("counts_check")) {
		fprintf(stderr, "differential: seed %ju: a count is wrong\n",
			(uintmax_t)episode_seed);
		exit(EXIT_FAILURE);
	}
	host_close();
	worlds_end();
	episodes++;
	return found;
}

/* Leaves out steps as long as the last one still makes a difference. */
static void shrink(uint64_t episode_seed, int last)
{
	double until = seconds_now() + shrink_seconds;
	int size = last / 2;

	for (; size > 0; size = size > 1 ? size / 2 : 0)
		for (int begin = last - size; begin > -size; begin -= size) {
			bool kept[MAX_STEPS];
			int left = 0;

			if (seconds_now() > until)
				return;
			memcpy(kept, chosen, sizeof(kept));
			for (int i = begin < 0 ? 0 : begin; i < begin + size; i++) {
				left += chosen[i];
				chosen[i] = false;
			}
			if (left && episode(episode_seed, last + 1, false) != last)
				memcpy(chosen, kept, sizeof(kept));
		}
}

static void report(uint64_t episode_seed, int last)
{
	const char *comma = "";

	for (int i = last + 1; i < steps; i++)
		chosen[i] = false;
	printf("\nseed %ju, step %d: the worlds differ\n", (uintmax_t)episode_seed, last);
	if (shrink_seconds)
		shrink(episode_seed, last);
	printf("\nthe shortest that was found:\n");
	episode(episode_seed, last + 1, true);
	printf("\nto repeat it: --seed %ju --steps %d --only ", (uintmax_t)episode_seed, last + 1);
	for (int i = 0; i <= last; i++)
		if (chosen[i]) {
			printf("%s%d", comma, i);
			comma = ",";
		}
	printf("\n");
}

static void choose_steps(void)
{
	char *rest;

	memset(chosen, !only, sizeof(chosen));
	for (const char *text = only; text; text = *rest ? rest + 1 : NULL) {
		long number = strtol(text, &rest, 10);

		if (number < 0 || number >= MAX_STEPS)
			die_usage();
		chosen[number] = true;
	}
}

static void run_on_one_cpu(void)
{
	cpu_set_t cpus;
	int cpu = sched_getcpu();

	CPU_ZERO(&cpus);
	CPU_SET((size_t)cpu, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		die("sched_setaffinity");
}

/* What depends on the instant of a step, a second that ends, is no finding: it does not come again.
 */
static int episode_twice(uint64_t episode_seed)
{
	int found;

	choose_steps();
	found = episode(episode_seed, steps, verbose);
	if (found < 0)
		return found;
	choose_steps();
	found = episode(episode_seed, steps, verbose);
	if (found < 0)
		count_reason("a difference that did not come again");
	return found;
}

int main(int argc, char **argv)
{
	static const struct tool_option options[] = {
		{.name = "script", .text = &script},
		{.name = "near", .text = &near},
		{.name = "far", .text = &far},
		{.name = "inspect", .text = &inspect},
		{.name = "only", .text = &only},
		{.name = "seed", .number = &seed, .low = 0, .high = 1 << 30},
		{.name = "steps", .number = &steps, .low = 1, .high = MAX_STEPS},
		{.name = "seconds", .number = &seconds, .low = 0, .high = 1 << 30},
		{.name = "episodes", .number = &most_episodes, .low = 1, .high = 1 << 30},
		{.name = "shrink", .number = &shrink_seconds, .low = 0, .high = 1 << 30},
		{.name = "verbose", .number = &verbose, .low = 0, .high = 1},
		{0},
	};
	double begun = seconds_now();
	int found = -1, at = 0;

	parse_options(argc, argv, options);
	if (!script || !near || !far)
		die_usage();
	setlinebuf(stdout);
	signal(SIGPIPE, SIG_IGN);
	raise_file_limit();
	run_on_one_cpu();
	barrier_open(near, far);
	do {
		found = episode_twice((uint64_t)(seed + at));
		at++;
	} while (found < 0 && (seconds ? seconds_now() < begun + seconds : at < most_episodes));
	printf("note: %ld episodes from seed %d, %ld steps, %.0f a second\n", episodes, seed,
	       steps_made, (double)steps_made / (seconds_now() - begun));
	for (int i = 0; reasons[i].why; i++)
		printf("note: %ld times: %s\n", reasons[i].count, reasons[i].why);
	if (found >= 0)
		report((uint64_t)(seed + at - 1), found);
	return found >= 0;
}
