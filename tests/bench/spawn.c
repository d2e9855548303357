/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * spawn.c - measures the time of processes from start to exit. Cases run in turns, so that other
 * load on the machine affects all of them alike.
 */
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool.h"

#define MAX_CASES 16
#define MAX_COPIES 1024
#define MAX_WORDS 64
#define MAX_SETTINGS 32
#define WORD_SIZE 4096

const char tool_usage[] =
	"usage: spawn ROUNDS CASE [+ CASE...]\n"
	"  CASE: NAME[*COPIES|@COPIES] [VARIABLE=VALUE...] [<FILE] PROGRAM [ARGUMENT...]\n"
	"Each round runs each case once: one process, *COPIES one after another, or @COPIES at\n"
	"once; {} is the copy's number from 0 on, in values, FILE and arguments. Prints a line of\n"
	"JSON for each case: microseconds from before the first copy's start until the last one's\n"
	"end, and the largest resident size of a process. A copy that fails ends it all.\n";

struct spawn_case {
	const char *name;
	int copies;
	bool at_once;
	const char *settings[MAX_SETTINGS];
	int setting_count;
	const char *input;
	char **words;
	int word_count;
	double *microseconds; /* of each round */
	long max_resident;    /* KiB */
};

/* One copy's environment, arguments and input. */
struct copy {
	char *arguments[MAX_WORDS + 1];
	char *environment[MAX_SETTINGS + 1];
	int input, output;
	pid_t pid;
};

static void parse_name(struct spawn_case *spawn, char *text)
{
	char *copies = text + strcspn(text, "*@");

	spawn->name = text;
	spawn->copies = 1;
	if (!*copies)
		return;
	spawn->at_once = *copies == '@';
	*copies = '\0';
	spawn->copies = parse_number(copies + 1, 1, MAX_COPIES);
}

/* The words up to the next "+". Returns their number, including that. */
static int parse_case(struct spawn_case *spawn, char **words, int count)
{
	int i = 1, end;

	parse_name(spawn, words[0]);
	for (; i < count && (strchr(words[i], '=') || *words[i] == '<'); i++) {
		if (*words[i] == '<')
			spawn->input = words[i] + 1;
		else if (spawn->setting_count < MAX_SETTINGS)
			spawn->settings[spawn->setting_count++] = words[i];
		else
			die_usage();
	}
	for (end = i; end < count && strcmp(words[end], "+") != 0; end++)
		;
	spawn->words = words + i;
	spawn->word_count = end - i;
	if (!spawn->word_count || spawn->word_count > MAX_WORDS)
		die_usage();
	return end < count ? end + 1 : end;
}

/* Replaces each {} by the copy's number. */
static char *expand(const char *text, int number)
{
	char expanded[WORD_SIZE], *word;
	size_t used = 0;

	while (*text && used < sizeof(expanded) - 16) {
		if (text[0] == '{' && text[1] == '}') {
			used += (size_t)snprintf(expanded + used, 16, "%d", number);
			text += 2;
		} else {
			expanded[used++] = *text++;
		}
	}
	expanded[used] = '\0';
	word = strdup(expanded);
	if (!word)
		die("no memory");
	return word;
}

static void copy_prepare(struct copy *copy, const struct spawn_case *spawn, int number)
{
	char *input = expand(spawn->input ? spawn->input : "/dev/null", number);

	for (int i = 0; i < spawn->word_count; i++)
		copy->arguments[i] = expand(spawn->words[i], number);
	for (int i = 0; i < spawn->setting_count; i++)
		copy->environment[i] = expand(spawn->settings[i], number);
	copy->input = open(input, O_RDONLY | O_CLOEXEC);
	if (copy->input < 0)
		die(input);
	copy->output = memfd_create("output", MFD_CLOEXEC);
	if (copy->output < 0)
		die("memfd_create");
	free(input);
}

static void copy_release(struct copy *copy)
{
	for (char **word = copy->arguments; *word; word++)
		free(*word);
	for (char **word = copy->environment; *word; word++)
		free(*word);
	close(copy->input);
	close(copy->output);
}

static void copy_start(struct copy *copy)
{
	posix_spawn_file_actions_t actions;

	if (posix_spawn_file_actions_init(&actions) ||
	    posix_spawn_file_actions_adddup2(&actions, copy->input, STDIN_FILENO) ||
	    posix_spawn_file_actions_adddup2(&actions, copy->output, STDOUT_FILENO) ||
	    posix_spawn_file_actions_adddup2(&actions, copy->output, STDERR_FILENO))
		die("no memory");
	errno = posix_spawn(&copy->pid, copy->arguments[0], &actions, NULL, copy->arguments,
			    copy->environment);
	if (errno)
		die(copy->arguments[0]);
	posix_spawn_file_actions_destroy(&actions);
}

static _Noreturn void report_failure(const struct spawn_case *spawn, const struct copy *copy,
				     int number, int status)
{
	char text[4096];
	ssize_t length = pread(copy->output, text, sizeof(text), 0);

	fprintf(stderr, "spawn: %s, copy %d, ended with status %d and said: %.*s\n", spawn->name,
		number, WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status),
		length > 0 ? (int)length : 0, text);
	exit(EXIT_FAILURE);
}

static void copy_wait(struct spawn_case *spawn, const struct copy *copy, int number)
{
	struct rusage usage_of_child;
	int status;

	if (wait4(copy->pid, &status, 0, &usage_of_child) != copy->pid)
		die("wait4");
	if (status)
		report_failure(spawn, copy, number, status);
	if (usage_of_child.ru_maxrss > spawn->max_resident)
		spawn->max_resident = usage_of_child.ru_maxrss;
}

static double run_case(struct spawn_case *spawn)
{
	static struct copy copies[MAX_COPIES];
	double began, took;

	memset(copies, 0, (size_t)spawn->copies * sizeof(*copies));
	for (int i = 0; i < spawn->copies; i++)
		copy_prepare(&copies[i], spawn, i);
	began = seconds_now() * 1e6;
	for (int i = 0; i < spawn->copies; i++) {
		copy_start(&copies[i]);
		if (!spawn->at_once)
			copy_wait(spawn, &copies[i], i);
	}
	for (int i = 0; spawn->at_once && i < spawn->copies; i++)
		copy_wait(spawn, &copies[i], i);
	took = seconds_now() * 1e6 - began;
	for (int i = 0; i < spawn->copies; i++)
		copy_release(&copies[i]);
	return took;
}

static int compare(const void *a, const void *b)
{
	double one = *(const double *)a, other = *(const double *)b;

	return (one > other) - (one < other);
}

static void print_case(const struct spawn_case *spawn, int rounds)
{
	double *sorted = spawn->microseconds;

	qsort(sorted, (size_t)rounds, sizeof(*sorted), compare);
	printf("{\"name\": \"%s\", \"copies\": %d, \"at_once\": %s, \"rounds\": %d,"
	       " \"min_us\": %.1f, \"median_us\": %.1f, \"p90_us\": %.1f, \"p99_us\": %.1f,"
	       " \"max_rss_kib\": %ld}\n",
	       spawn->name, spawn->copies, spawn->at_once ? "true" : "false", rounds, sorted[0],
	       sorted[rounds / 2], sorted[rounds * 9 / 10], sorted[rounds * 99 / 100],
	       spawn->max_resident);
}

int main(int argc, char **argv)
{
	struct spawn_case cases[MAX_CASES] = {0};
	int count = 0, rounds, next = 2;

	if (argc < 4)
		die_usage();
	rounds = parse_number(argv[1], 1, 1000000);
	while (next < argc) {
		if (count == MAX_CASES)
			die_usage();
		next += parse_case(&cases[count], argv + next, argc - next);
		cases[count].microseconds = calloc((size_t)rounds, sizeof(double));
		if (!cases[count++].microseconds)
			die("no memory");
	}
	/* An extra round fills the caches, unless only one is wanted. */
	for (int round = rounds > 1 ? -1 : 0; round < rounds; round++)
		for (int i = 0; i < count; i++)
			cases[i].microseconds[round < 0 ? 0 : round] = run_case(&cases[i]);
	for (int i = 0; i < count; i++) {
		print_case(&cases[i], rounds);
		free(cases[i].microseconds);
	}
	return EXIT_SUCCESS;
}
