/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* stats.c - `bpf-portmap stats`: counters, and how full the tables are. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/memory.h"
#include "lib/ports.h"
#include "lib/text.h"
#include "operator/doctor/doctor.h"
#include "operator/print/format.h"
#include "operator/print/output.h"
#include "operator/verbs.h"
#include "operator/view/statistics.h"

#define PREFIX "bpf_portmap_"

static void write_head(FILE *file, const char *name, const char *type, const char *help)
{
	fprintf(file, "# HELP " PREFIX "%s %s\n# TYPE " PREFIX "%s %s\n", name, help, name, type);
}

/* One series, with labels: name, value, name, value, ..., "". */
static void write_series(FILE *file, const char *name, uint64_t number, ...)
{
	char separator = '{';
	const char *label;
	va_list labels;

	fprintf(file, PREFIX "%s", name);
	va_start(labels, number);
	for (; *(label = va_arg(labels, const char *)); separator = ',') {
		fprintf(file, "%c%s=\"", separator, label);
		for (const char *value = va_arg(labels, const char *); *value; value++) {
			if (*value == '"' || *value == '\\')
				putc('\\', file);
			putc(*value, file);
		}
		putc('"', file);
	}
	va_end(labels);
	fprintf(file, "%s %" PRIu64 "\n", separator == ',' ? "}" : "", number);
}

static void write_info(FILE *file, const struct statistics *statistics)
{
	char layout[16];
	struct utsname kernel;

	if (uname(&kernel))
		snprintf(kernel.release, sizeof(kernel.release), "unknown");
	snprintf(layout, sizeof(layout), "%d", LAYOUT);
	write_head(file, "info", "gauge",
		   "Version of the programs that are loaded, layout of their maps, kernel.");
	write_series(file, "info", 1, "version",
		     *statistics->version ? statistics->version : PROGRAM_VERSION, "layout", layout,
		     "kernel", kernel.release, "");
}

static void write_tally(FILE *file, const char *name, const char *label, json_t *counts)
{
	const char *network, *word;
	json_t *words, *count;

	json_object_foreach (counts, network, words)
		json_object_foreach (words, word, count)
			write_series(file, name, (uint64_t)json_integer_value(count), "network",
				     network, label, word, "");
}

static void write_state(FILE *file, const struct statistics *statistics)
{
	write_head(file, "ports", "gauge", "Mapped ports.");
	write_tally(file, "ports", "protocol", statistics->ports);
	write_head(file, "attachments", "gauge",
		   "Attachments of containers; adding: ADD is under way, or did not finish.");
	write_tally(file, "attachments", "state", statistics->attachments);
	write_head(file, "flows", "gauge", "Connections now.");
	write_series(file, "flows", statistics->flows.established, "state", "established", "");
	write_series(file, "flows", statistics->flows.half_open, "state", "half_open", "");
	write_head(file, "interface_attached", "gauge",
		   "Whether the program that belongs at the hook of an interface of the host is"
		   " there.");
	for (size_t i = 0; i < statistics->hook_count; i++)
		write_series(file, "interface_attached", statistics->hooks[i].attached, "interface",
			     statistics->hooks[i].interface, "hook", statistics->hooks[i].hook, "");
}

static void write_tables(FILE *file, const struct statistics *statistics)
{
	write_head(file, "table_entries", "gauge", "Entries in use in a table.");
	for (size_t i = 0; i < statistics->table_count; i++)
		write_series(file, "table_entries", statistics->tables[i].entries, "table",
			     statistics->tables[i].name, "");
	write_head(file, "table_max_entries", "gauge", "Entries that a table can have.");
	for (size_t i = 0; i < statistics->table_count; i++)
		write_series(file, "table_max_entries", statistics->tables[i].max_entries, "table",
			     statistics->tables[i].name, "");
	write_head(file, "map_memory_bytes", "gauge", "Memory of all maps.");
	write_series(file, "map_memory_bytes", statistics->memory, "");
}

/* Each counter is in the first series with whose prefix it begins, so that a sum counts nothing
 * twice. */
static const struct series {
	const char *prefix, *metric;
	const char *labels; /* a label that ends with = has the rest of the counter's name */
	const char *help;   /* of the first series of a metric */
} all_series[] = {
	{"rewritten_destination", "packets_total", "direction=\"in\",path=\"stack\"",
	 "Translated packets into and out of containers, through the IP stack or past it."},
	{"fast_into_container", "packets_total", "direction=\"in\",path=\"fast\"", NULL},
	{"rewritten_source", "packets_total", "direction=\"out\",path=\"stack\"", NULL},
	{"fast_out", "packets_total", "direction=\"out\",path=\"fast\"", NULL},
	{"flow_mapping", "flows_created_total", "kind=\"mapping\"", "Connections that have begun."},
	{"flow_masquerade", "flows_created_total", "kind=\"masquerade\"", NULL},
	{"flow_direct", "flows_created_total", "kind=\"direct\"", NULL},
	{"flow_host", "flows_created_total", "kind=\"host\"", NULL},
	{"drop_", "dropped_packets_total", "reason=", "Packets dropped, by reason."},
	{"masquerade_tries_", "masquerade_allocations_total",
	 "tries=", "Masqueraded connections by how many ports were tried for them."},
	{"", "events_total", "event=", "Every other counter, by its name in `stats --all`."},
};

#define SERIES_COUNT (sizeof(all_series) / sizeof(all_series[0]))

static const struct series *series_of(const struct counter_word *word)
{
	const struct series *series = all_series;

	while (strncmp(word->name, series->prefix, strlen(series->prefix)) != 0)
		series++;
	return series;
}

static void write_counter(FILE *file, const struct series *series, const struct counter_word *word,
			  uint64_t number)
{
	bool has_rest = series->labels[strlen(series->labels) - 1] == '=';
	const char *rest = word->name + strlen(series->prefix), *quote = has_rest ? "\"" : "";

	fprintf(file, PREFIX "%s{%s%s%s%s} %" PRIu64 "\n", series->metric, series->labels, quote,
		has_rest ? rest : "", quote, number);
}

static void write_counters(FILE *file, const struct counters *counters)
{
	for_each (series, all_series, SERIES_COUNT) {
		if (series->help)
			write_head(file, series->metric, "counter", series->help);
		for (size_t j = 0; j < counter_word_count; j++)
			if (series_of(&counter_words[j]) == series)
				write_counter(file, series, &counter_words[j],
					      counter_of(counters, &counter_words[j]));
	}
}

static void write_checks(FILE *file, const struct statistics *statistics)
{
	write_head(file, "check_status", "gauge",
		   "What the checks of bpf-portmap doctor say: 0 fine, 1 a warning, 2 a failure.");
	for (size_t i = 0; i < statistics->check_count; i++)
		write_series(file, "check_status", (uint64_t)statistics->checks[i].status, "check",
			     statistics->checks[i].check, "");
}

static void write_port(FILE *file, const struct mapping *mapping,
		       const struct container_info *container)
{
	const struct workload *workload = container ? &container->record.workload : NULL;
	char address[CNI_ADDRESS_TEXT_SIZE], port[8];

	snprintf(port, sizeof(port), "%u", mapping->key.host_port);
	write_series(file, "port_flows_total", mapping->portmap.flows, "address",
		     cni_address_format(mapping->key.host_address, address), "port", port,
		     "protocol", protocol_word(mapping->key.protocol), "namespace",
		     workload ? workload->namespace : "", "pod",
		     workload && workload->kind != WORKLOAD_NONE ? workload->name : "", "container",
		     container ? container->name.container_id : "", "");
}

/* Writes them; `mappings` NULL: no series for single ports. Errors show in the file. */
static void prometheus_write(FILE *file, const struct statistics *statistics, struct view *view,
			     const struct mappings *mappings)
{
	write_info(file, statistics);
	write_state(file, statistics);
	write_tables(file, statistics);
	write_counters(file, &statistics->counters);
	if (statistics->checks)
		write_checks(file, statistics);
	if (!mappings)
		return;
	write_head(file, "port_flows_total", "counter",
		   "Connections that have begun through a mapping, since it was made.");
	for (size_t i = 0; i < mappings->count; i++)
		write_port(file, &mappings->list[i],
			   view_container(view, mappings->list[i].portmap.owner));
}

static int refuse_file(const char *path, struct cni_error *err)
{
	return cni_error_set(err, CNI_ERROR_IO, "cannot write %s: %s", path, strerror(errno));
}

/* Writes them to the file of that name, which is replaced as a whole, so that no reader sees a
 * part. CNI_ERROR_IO. */
static int prometheus_replace(const char *path, const struct statistics *statistics,
			      struct view *view, const struct mappings *mappings,
			      struct cni_error *err)
{
	/* The collector reads files that end with .prom. */
	cleanup_free char *temporary = cni_format("%s.XXXXXX", path);
	struct stat status;
	FILE *file;
	bool failed;
	int fd;

	/* A file would take the place of /dev/null, of /dev/stdout, or of a link. */
	if (!lstat(path, &status) && !S_ISREG(status.st_mode))
		return cni_error_set(err, CNI_ERROR_IO,
				     "%s is no regular file, and is not replaced: without =FILE"
				     " the metrics are printed",
				     path);
	fd = mkstemp(temporary);
	file = fd < 0 ? NULL : fdopen(fd, "w");
	if (!file)
		return refuse_file(path, err);
	prometheus_write(file, statistics, view, mappings);
	/* Another user runs the collector. */
	failed = fchmod(fd, 0644) || ferror(file);
	failed = fclose(file) || failed;
	if (!failed && !rename(temporary, path))
		return 0;
	refuse_file(path, err);
	unlink(temporary);
	return -1;
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
	for_each (table, statistics->tables, statistics->table_count) {
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
	for_each (word, counter_words, counter_word_count) {
		uint64_t value = counter_of(&statistics->counters, word);

		if (!value && !output->options->all && !output->options->json)
			continue;
		output_text(output, "counter");
		output_text(output, word->name);
		output_number(output, value);
		output_text(output, word->meaning);
	}
}

static int print_all(const struct statistics *statistics, const struct options *options,
		     struct cni_error *err)
{
	cleanup_output struct output output = {.options = options};
	json_t *summary = flow_counts_json(&statistics->flows);
	char flows[FLOW_COUNTS_TEXT_SIZE], memory[NUMBER_TEXT_SIZE];

	if (!options->json)
		printf("%s; maps %s KiB\n\n", flow_counts_format(&statistics->flows, flows),
		       format_number(statistics->memory / 1024, memory));
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
