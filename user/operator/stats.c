/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* stats.c - `bpf-portmap stats`: counters, and how full the tables are. */
#include <stdio.h>
#include <stdlib.h>

#include "operator/print/format.h"
#include "operator/doctor/doctor.h"
#include "operator/print/output.h"
#include "operator/print/prometheus.h"
#include "operator/view/statistics.h"
#include "operator/verbs.h"

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
	{"", TABLE_HIDDEN, "type"},
	{"COUNTER", TABLE_LEFT, "name"},
	{"VALUE", TABLE_RIGHT, "value"},
	{"MEANING", TABLE_LEFT, "meaning"},
};

static void add_counters(struct output *output, const struct statistics *statistics)
{
	output_begin(output, counter_columns, sizeof(counter_columns) / sizeof(counter_columns[0]));
	for (size_t i = 0; i < counter_word_count; i++) {
		const struct counter_word *word = &counter_words[i];
		uint64_t value = counter_of(&statistics->counters, word);

		if (!value && !output->options->all && !output->options->json)
			continue;
		output_text(output, "counter");
		output_text(output, word->name);
		output_number(output, value);
		output_text(output, word->meaning);
	}
}

static void print_head(const struct statistics *statistics)
{
	char flows[FLOW_COUNTS_TEXT_SIZE], memory[NUMBER_TEXT_SIZE];

	printf("%s; maps %s KiB\n\n", flow_counts_format(&statistics->flows, flows),
	       format_number(statistics->memory / 1024, memory));
}

static int print_all(const struct statistics *statistics, const struct options *options,
		     struct cni_error *err)
{
	cleanup_output struct output output = {.options = options};
	json_t *summary = flow_counts_json(&statistics->flows);

	if (!options->json)
		print_head(statistics);
	add_tables(&output, statistics);
	add_counters(&output, statistics);
	json_object_set_new(summary, "memory_bytes", json_integer((json_int_t)statistics->memory));
	return output_end(&output, summary, err);
}

int verb_stats(const struct options *options, char *const *operands, struct cni_error *err)
{
	cleanup_statistics struct statistics statistics = {0};
	cleanup_mappings struct mappings mappings = {0};
	/* A timer writes the file again and again. */
	cleanup_view struct view view = {.is_quiet = options->prometheus_file};
	const struct mappings *ports = options->per_port ? &mappings : NULL;

	if (!options->prometheus && (options->per_port || options->checks))
		return cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT, "--%s needs --prometheus",
				     options->checks ? "checks" : "per-port");
	if (view_open(&view, err) || (!view.is_empty && mappings_read(&mappings, &view, err)) ||
	    statistics_read(&statistics, &view, &mappings, err))
		return -1;
	if (options->checks)
		doctor_read_statuses(&statistics);
	if (options->prometheus_file)
		return prometheus_replace(options->prometheus_file, &statistics, &view, ports, err);
	if (!options->prometheus)
		return print_all(&statistics, options, err);
	prometheus_write(stdout, &statistics, &view, ports);
	return EXIT_SUCCESS;
}
