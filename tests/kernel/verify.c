/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * verify.c - loads the programs of BPF objects as the plugin does, and prints a TAP line for each:
 * "ok 1 - the verifier accepts NAME # INSTRUCTIONS, MS". A program that takes the verifier long is
 * not ok either: the first ADD after boot waits for all of them.
 */
#include <bpf/libbpf.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_STATS 4 /* BPF_LOG_STATS: only the number of instructions and the time */
/* The kernel prints less than 1 kB in the end, but refuses the program if what it took back
 * meanwhile would not have fitted. */
#define LOG_SIZE (1 << 20)
#define MAX_PROGRAMS 64
/* The verifier may process so many, half as much again as today: enough for another kernel or
 * compiler, but not for a nested loop. */
#define MOST_INSTRUCTIONS 120000

static char logs[MAX_PROGRAMS][LOG_SIZE];

static int print_warning(enum libbpf_print_level level, const char *format, va_list arguments)
{
	return level == LIBBPF_WARN ? vfprintf(stderr, format, arguments) : 0;
}

static void collect_logs(struct bpf_object *object)
{
	struct bpf_program *program;
	int count = 0;

	bpf_object__for_each_program (program, object) {
		if (count == MAX_PROGRAMS) {
			fprintf(stderr, "verify: more programs than expected\n");
			exit(2);
		}
		bpf_program__set_log_level(program, LOG_STATS);
		bpf_program__set_log_buf(program, logs[count], sizeof(logs[count]));
		count++;
	}
}

/* The number after the words in a log; -1: there is none. */
static long number_after(const char *log, const char *words)
{
	const char *at = strstr(log, words);

	return at ? strtol(at + strlen(words), NULL, 10) : -1;
}

/* What the verifier says of a program that it refuses, as comments of TAP */
static void print_log(char *log)
{
	for (char *line = strtok(log, "\n"); line; line = strtok(NULL, "\n"))
		printf("# %s\n", line);
}

/* Returns how many are not ok. *number counts the lines. */
static int report(struct bpf_object *object, int *number)
{
	struct bpf_program *program;
	int index = 0, bad = 0;

	bpf_object__for_each_program (program, object) {
		char *log = logs[index++];
		/* 7.2 prints before it what each function took: "insns processed 1+2+3". */
		long instructions = number_after(log, "\nprocessed ");
		bool good = bpf_program__fd(program) >= 0 && instructions <= MOST_INSTRUCTIONS;

		bad += !good;
		printf("%s %d - the verifier accepts %s # %ld, %ld\n", good ? "ok" : "not ok",
		       ++*number, bpf_program__name(program), instructions,
		       number_after(log, "verification time ") / 1000);
		if (!good)
			print_log(log);
	}
	return bad;
}

static int verify(const char *path, int *number)
{
	struct bpf_object *object = bpf_object__open_file(path, NULL);
	int bad;

	if (!object)
		return 1;
	collect_logs(object);
	bpf_object__load(object);
	bad = report(object, number);
	bpf_object__close(object);
	return bad;
}

int main(int argc, char **argv)
{
	int number = 0, bad = 0;

	if (argc < 2) {
		fprintf(stderr, "verify FILE.bpf.o...\n");
		return 2;
	}
	libbpf_set_print(print_warning);
	for (int i = 1; i < argc; i++)
		bad += verify(argv[i], &number);
	return bad ? 1 : 0;
}
