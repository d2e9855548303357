/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* statistics.h - everything that `bpf-portmap stats` shows, read once. */
#pragma once

#include <jansson.h>

#include "operator/view/mappings.h"
#include "operator/view/view.h"

struct counter_word {
	const char *name;
	const char *meaning;
	size_t offset; /* in struct counters */
};

extern const struct counter_word counter_words[];
extern const size_t counter_word_count;

uint64_t counter_of(const struct counters *counters, const struct counter_word *word);

/* How many connections there are, and could be. Begins as {0}. */
struct flow_counts {
	uint64_t established; /* assured: they have a place in the map of that name */
	uint64_t half_open;
	uint64_t established_max;
	uint64_t half_open_max;
};

/* Counts a connection. Call it for each that is alive. */
void flow_counts_add(struct flow_counts *counts, const struct connection *connection);
/* Reads the limits from the maps. */
void flow_counts_read_limits(struct flow_counts *counts, const struct view *view);

/* "table 1,204 of 131,072 (1 %), half-open 1 of 65,536" */
#define FLOW_COUNTS_TEXT_SIZE 160
const char *flow_counts_format(const struct flow_counts *counts, char text[FLOW_COUNTS_TEXT_SIZE]);

/* {"established":1204,"established_max":131072,"half_open":1,"half_open_max":65536} */
json_t *flow_counts_json(const struct flow_counts *counts);

#define TABLE_COUNT 12

struct table_use {
	const char *name; /* of the map */
	uint64_t entries;
	uint64_t max_entries;
};

/* Whether our program is at a hook of one of the host's own interfaces. */
struct hook_use {
	char interface[IF_NAMESIZE];
	const char *hook; /* "ingress" */
	bool attached;
};

/* The verdict of a check of `bpf-portmap doctor`. */
struct check_status {
	const char *check;
	int status; /* 0: fine; 1: a warning, or it could not look; 2: a failure */
};

/* Begins as {0}. */
struct statistics {
	struct check_status *checks; /* NULL: they are not asked for */
	size_t check_count;
	struct counters counters;
	struct flow_counts flows;
	struct table_use tables[TABLE_COUNT];
	size_t table_count;
	struct hook_use *hooks;
	size_t hook_count;
	json_t *ports;       /* {network: {protocol: count}}; NULL: none */
	json_t *attachments; /* {network: {state: count}} */
	uint64_t memory;     /* bytes, of all maps */
	char version[PROGRAM_VERSION_SIZE];
};

/* Reads all of it; in an empty view all is 0. CNI_ERROR_KERNEL_REFUSED, CNI_ERROR_IO. */
int statistics_read(struct statistics *statistics, struct view *view,
		    const struct mappings *mappings, struct cni_error *err);
void statistics_release(struct statistics *statistics);

#define cleanup_statistics __attribute__((cleanup(statistics_release)))
