/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * nat_graph.h - which rules packets come to, by the jumps from chain to chain. Without any I/O.
 */
#ifndef NET_NAT_GRAPH_H
#define NET_NAT_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/nat_rule.h"

struct nat_edge;

/* Begins as {0}. */
struct nat_graph {
	struct nat_edge *edges;
	size_t edge_count, edge_room;
	struct nat_rule *rules; /* those that were to be kept */
	size_t rule_count, rule_room;
	uint64_t *roots;
	size_t root_count;
};

/* A chain that packets begin in. -1: no memory. */
int nat_graph_add_root(struct nat_graph *graph, uint64_t chain);

/* A rule, after those before it in its chain. What neither jumps nor translates is left out.
 * kept: a copy of it is to be in `rules`, unless there are very many. -1: no memory. */
int nat_graph_add(struct nat_graph *graph, const struct nat_rule *rule, bool kept);

/* Appends a rule that is `effective` already. -1: no memory, or very many. */
int nat_graph_append(struct nat_graph *graph, const struct nat_rule *rule);

/* Says of each rule that is kept whether it is effective; of one that jumps also where packets go
 * at last. */
void nat_graph_walk(struct nat_graph *graph);

void nat_graph_release(struct nat_graph *graph);

#endif
