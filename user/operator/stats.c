/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* stats.c - `bpf-portmap stats`: counters, and how full the tables are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "operator/print/format.h"
#include "operator/print/items.h"
#include "operator/doctor/statuses.h"
#include "operator/print/prometheus.h"
#include "operator/view/statistics.h"
#include "operator/print/table.h"
#include "operator/print/terminal.h"
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
	{"TABLE", TABLE_LEFT}, {"ENTRIES", TABLE_RIGHT}, {"OF", TABLE_RIGHT}, {"USE", TABLE_RIGHT}};

static int print_tables(const struct statistics *statistics, const struct options *options,
			struct cni_error *err)
{
	char number[NUMBER_TEXT_SIZE];
	cleanup_table struct table table;

	terminal_begin_table(&table, options->color, table_columns, 4);
	for (size_t i = 0; i < statistics->table_count; i++) {
		const struct table_use *use = &statistics->tables[i];

		if (!use->entries && !options->all)
			continue;
		table_cell(&table, use->name);
		table_cell(&table, format_number(use->entries, number));
		table_cell(&table, format_number(use->max_entries, number));
		table_printf(&table, "%llu %%",
			     (unsigned long long)(100 * use->entries /
						  (use->max_entries ? use->max_entries : 1)));
	}
	return table_end(&table, err);
}

/* What was counted in a second since the last round. A map that was made anew counts from 0. */
static void add_rate(struct table *table, uint64_t now, uint64_t before, double seconds)
{
	if (seconds <= 0 || now < before)
		table_cell(table, "-");
	else
		table_printf(table, "%.1f", (double)(now - before) / seconds);
}

static int print_counters(const struct statistics *statistics, const struct options *options,
			  const struct last *last, struct cni_error *err)
{
	struct table_column columns[] = {{"COUNTER", TABLE_LEFT},
					 {"VALUE", TABLE_RIGHT},
					 {"A SECOND", TABLE_RIGHT},
					 {"MEANING", TABLE_LEFT}};
	double seconds = last->is_known ? seconds_now() - last->when : 0;
	cleanup_table struct table table;
	char number[NUMBER_TEXT_SIZE];

	if (!options->watch)
		columns[2].style = TABLE_HIDDEN;
	terminal_begin_table(&table, options->color, columns, 4);
	for (size_t i = 0; i < counter_word_count; i++) {
		const struct counter_word *word = &counter_words[i];
		uint64_t value = counter_of(&statistics->counters, word);

		if (!value && !options->all)
			continue;
		table_cell(&table, word->name);
		table_cell(&table, format_number(value, number));
		add_rate(&table, value, counter_of(&last->counters, word), seconds);
		table_cell(&table, word->meaning);
	}
	return table_end(&table, err);
}

static int print_table(const struct statistics *statistics, const struct options *options,
		       struct last *last, struct cni_error *err)
{
	char flows[FLOW_COUNTS_TEXT_SIZE], memory[NUMBER_TEXT_SIZE];

	if (options->watch && isatty(STDOUT_FILENO))
		fputs(CLEAR_SCREEN, stdout);
	printf("%s; maps %s KiB\n\n", flow_counts_format(&statistics->flows, flows),
	       format_number(statistics->memory / 1024, memory));
	if (print_tables(statistics, options, err))
		return -1;
	putchar('\n');
	if (print_counters(statistics, options, last, err))
		return -1;
	*last = (struct last){true, seconds_now(), statistics->counters};
	return 0;
}

static int add_items(struct items *items, const struct statistics *statistics,
		     struct cni_error *err)
{
	for (size_t i = 0; i < statistics->table_count; i++) {
		const struct table_use *use = &statistics->tables[i];

		if (items_add(items,
			      json_pack("{s:s, s:s, s:I, s:I}", "type", "table", "name", use->name,
					"entries", (json_int_t)use->entries, "max_entries",
					(json_int_t)use->max_entries),
			      err))
			return -1;
	}
	for (size_t i = 0; i < counter_word_count; i++) {
		const struct counter_word *word = &counter_words[i];

		if (items_add(items,
			      json_pack("{s:s, s:s, s:I, s:s}", "type", "counter", "name",
					word->name, "value",
					(json_int_t)counter_of(&statistics->counters, word),
					"meaning", word->meaning),
			      err))
			return -1;
	}
	return 0;
}

static int print_json(const struct statistics *statistics, struct cni_error *err)
{
	struct items items = {.file = stdout};
	json_t *summary;

	if (add_items(&items, statistics, err))
		return -1;
	summary = flow_counts_json(&statistics->flows);
	json_object_set_new(summary, "memory_bytes", json_integer((json_int_t)statistics->memory));
	return items_end(&items, summary, err);
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
	return options->json ? print_json(&statistics, err)
			     : print_table(&statistics, options, last, err);
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
