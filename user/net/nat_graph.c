/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* nat_graph.c - which rules packets come to, by the jumps from chain to chain. */
#include "net/nat_graph.h"

#include <stdlib.h>
#include <string.h>

#define MAX_RULES 1024
#define MAX_DEPTH 16 /* as in the kernel */
#define NOT_KEPT SIZE_MAX

/* One rule of a chain. */
struct nat_edge {
	uint64_t chain, target;
	size_t order; /* among all rules */
	size_t rule;  /* among those that are kept, or NOT_KEPT */
	bool translates;
	uint8_t new_address[CNI_ADDRESS_SIZE];
	uint16_t new_port;
	/* Of a chain's first one. */
	bool visited;
	const struct nat_edge *translating; /* the first one that is come to in the chain */
};

/* Room for one more. */
static int grow(void **array, size_t count, size_t *room, size_t size)
{
	size_t wanted = *room ? *room * 2 : 64;
	void *grown;

	if (count < *room)
		return 0;
	grown = reallocarray(*array, wanted, size);
	if (!grown)
		return -1;
	*array = grown;
	*room = wanted;
	return 0;
}

int nat_graph_add_root(struct nat_graph *graph, uint64_t chain)
{
	uint64_t *grown = reallocarray(graph->roots, graph->root_count + 1, sizeof(*grown));

	if (!grown)
		return -1;
	graph->roots = grown;
	graph->roots[graph->root_count++] = chain;
	return 0;
}

int nat_graph_append(struct nat_graph *graph, const struct nat_rule *rule)
{
	if (graph->rule_count == MAX_RULES || grow((void **)&graph->rules, graph->rule_count,
						   &graph->rule_room, sizeof(*graph->rules)))
		return -1;
	graph->rules[graph->rule_count++] = *rule;
	return 0;
}

int nat_graph_add(struct nat_graph *graph, const struct nat_rule *rule, bool kept)
{
	struct nat_edge *edge;

	if (!rule->translates && !rule->target)
		return 0;
	if (grow((void **)&graph->edges, graph->edge_count, &graph->edge_room,
		 sizeof(*graph->edges)))
		return -1;
	edge = &graph->edges[graph->edge_count];
	*edge = (struct nat_edge){
		.chain = rule->chain,
		.target = rule->target,
		.order = graph->edge_count++,
		.rule = NOT_KEPT,
		.translates = rule->translates,
		.new_port = rule->new_port,
	};
	memcpy(edge->new_address, rule->new_address, sizeof(edge->new_address));
	if (!kept || graph->rule_count == MAX_RULES)
		return 0;
	edge->rule = graph->rule_count;
	return nat_graph_append(graph, rule);
}

static int compare_edges(const void *left, const void *right)
{
	const struct nat_edge *a = left, *b = right;

	if (a->chain != b->chain)
		return a->chain < b->chain ? -1 : 1;
	return a->order < b->order ? -1 : 1;
}

/* The first one of a chain, or of the next one that there is. */
static size_t first_of_chain(const struct nat_graph *graph, uint64_t chain)
{
	size_t low = 0, high = graph->edge_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (graph->edges[middle].chain < chain)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void mark(struct nat_graph *graph, const struct nat_edge *edge,
		 const struct nat_edge *translating)
{
	struct nat_rule *rule;

	if (edge->rule == NOT_KEPT)
		return;
	rule = &graph->rules[edge->rule];
	rule->effective = true;
	memcpy(rule->new_address, translating->new_address, sizeof(rule->new_address));
	rule->new_port = translating->new_port;
}

/* Goes through a chain once, and into those that it jumps to. Returns the first rule that
 * translates, or NULL. */
static const struct nat_edge *visit(struct nat_graph *graph, uint64_t chain, unsigned int depth)
{
	size_t first = first_of_chain(graph, chain);
	struct nat_edge *head = &graph->edges[first];

	if (depth == MAX_DEPTH || first == graph->edge_count || head->chain != chain)
		return NULL;
	if (head->visited)
		return head->translating;
	head->visited = true;
	for (size_t i = first; i < graph->edge_count && graph->edges[i].chain == chain; i++) {
		const struct nat_edge *edge = &graph->edges[i], *translating = edge;

		if (!edge->translates)
			translating = visit(graph, edge->target, depth + 1);
		if (!translating)
			continue;
		mark(graph, edge, translating);
		if (!head->translating)
			head->translating = translating;
	}
	return head->translating;
}

void nat_graph_walk(struct nat_graph *graph)
{
	if (!graph->edge_count)
		return;
	qsort(graph->edges, graph->edge_count, sizeof(*graph->edges), compare_edges);
	for (size_t i = 0; i < graph->root_count; i++)
		visit(graph, graph->roots[i], 0);
}

void nat_graph_release(struct nat_graph *graph)
{
	free(graph->edges);
	free(graph->rules);
	free(graph->roots);
	*graph = (struct nat_graph){0};
}
