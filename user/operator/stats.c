/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* stats.c - `bpf-portmap stats`: counters, and how full the tables are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "operator/print/format.h"
#include "operator/doctor/doctor.h"
#include "operator/print/output.h"
#include "operator/print/prometheus.h"
#include "operator/view/statistics.h"
#include "operator/verbs.h"

#define CLEAR_SCREEN "\033[H\033[2J"

/* With --watch: what the last round saw. */
struct last {
	bool is_known;
	double when; /* CLOCK_MONOTONIC, seconds */
	struct counters counters;
};

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static const struct table_column table_columns[] = {
	{"", TABLE_HIDDEN, "type"},          {"TABLE", TABLE_LEFT, "name"},
	{"ENTRIES", TABLE_RIGHT, "entries"}, {"OF", TABLE_RIGHT, "max_entries"},
	{"USE", TABLE_RIGHT, NULL},
};

static void add_tables(struct output *output, const struct statistics *statistics)
{
	char use[16];

	output_begin(output, table_columns, sizeof(table_columns) / sizeof(table_columns[0]));
	for (size_t i = 0; i < statistics->table_count; i++) {
		const struct table_use *table = &statistics->tables[i];

		if (!table->entries && !output->options->all && !output->options->json)
			continue;
		snprintf(use, sizeof(use), "%llu %%",
			 (unsigned long long)(100 * table->entries /
					      (table->max_entries ? table->max_entries : 1)));
		output_text(output, "table");
		output_text(output, table->name);
		output_number(output, table->entries);
		output_number(output, table->max_entries);
		output_text(output, use);
	}
}

static const struct table_column counter_columns[] = {
	{"", TABLE_HIDDEN, "type"},         {"COUNTER", TABLE_LEFT, "name"},
	{"VALUE", TABLE_RIGHT, "value"},    {"A SECOND", TABLE_RIGHT | TABLE_EXTRA, NULL},
	{"MEANING", TABLE_LEFT, "meaning"},
};

/* The rate is what was counted in a second since the last round. A map that was made anew counts
 * from 0. */
static void add_counters(struct output *output, const struct statistics *statistics,
			 const struct last *last)
{
	double seconds = last->is_known ? seconds_now() - last->when : 0;

	output_begin(output, counter_columns, sizeof(counter_columns) / sizeof(counter_columns[0]));
	output->table.has_extra = output->options->watch;
	for (size_t i = 0; i < counter_word_count; i++) {
		const struct counter_word *word = &counter_words[i];
		uint64_t value = counter_of(&statistics->counters, word);
		uint64_t before = counter_of(&last->counters, word);
		char rate[32] = "-";

		if (!value && !output->options->all && !output->options->json)
			continue;
		if (seconds > 0 && value >= before)
			snprintf(rate, sizeof(rate), "%.1f", (double)(value - before) / seconds);
		output_text(output, "counter");
		output_text(output, word->name);
		output_number(output, value);
		output_text(output, rate);
		output_text(output, word->meaning);
	}
}

static void print_head(const struct statistics *statistics, const struct options *options)
{
	char flows[FLOW_COUNTS_TEXT_SIZE], memory[NUMBER_TEXT_SIZE];

	if (options->watch && isatty(STDOUT_FILENO))
		fputs(CLEAR_SCREEN, stdout);
	printf("%s; maps %s KiB\n\n", flow_counts_format(&statistics->flows, flows),
	       format_number(statistics->memory / 1024, memory));
}

static int print_all(const struct statistics *statistics, const struct options *options,
		     struct last *last, struct cni_error *err)
{
	cleanup_output struct output output = {.options = options};
	json_t *summary = flow_counts_json(&statistics->flows);

	if (!options->json)
		print_head(statistics, options);
	add_tables(&output, statistics);
	add_counters(&output, statistics, last);
	*last = (struct last){true, seconds_now(), statistics->counters};
	json_object_set_new(summary, "memory_bytes", json_integer((json_int_t)statistics->memory));
	return output_end(&output, summary, err);
}

static int print(const struct options *options, struct view *view, struct last *last,
		 struct cni_error *err)
{
	cleanup_statistics struct statistics statistics = {0};
	cleanup_mappings struct mappings mappings = {0};
	const struct mappings *ports = options->per_port ? &mappings : NULL;

	if ((!view->is_empty && mappings_read(&mappings, view, err)) ||
	    statistics_read(&statistics, view, &mappings, err))
		return -1;
	if (options->checks && options->prometheus)
		doctor_read_statuses(&statistics);
	if (options->prometheus_file)
		return prometheus_replace(options->prometheus_file, &statistics, view, ports, err);
	if (options->prometheus) {
		prometheus_write(stdout, &statistics, view, ports);
		return 0;
	}
	return print_all(&statistics, options, last, err);
}

/* Opened anew for each round: maps and containers may be others by then. */
static int print_round(const struct options *options, struct last *last, struct cni_error *err)
{
	/* A timer writes the file again and again. */
	cleanup_view struct view view = {.is_quiet = options->prometheus_file};

	return view_open(&view, err) ? -1 : print(options, &view, last, err);
}

int verb_stats(const struct options *options, char *const *operands, struct cni_error *err)
{
	struct last last = {0};

	for (;;) {
		if (print_round(options, &last, err))
			return -1;
		if (!options->watch)
			return EXIT_SUCCESS;
		if (fflush(stdout))
			return EXIT_FAILURE;
		sleep(options->watch);
	}
}
