/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* words.h - what an event says: in words, and as JSON. */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "operator/kernel/drops.h"
#include "operator/kernel/tracing.h"
#include "operator/view/view.h"

enum trace_outcome {
	OUTCOME_PASSED,
	OUTCOME_TRANSLATED, /* and on into the IP stack, or out of it */
	OUTCOME_DROPPED,
	OUTCOME_FAST_PATH, /* past the IP stack */
	OUTCOME_REROUTED,  /* by another interface, where routing wants its new source */
	OUTCOME_LIFTED,    /* into the IP stack rather than across the bridge */
	OUTCOME_HELD,      /* a fragment whose first one has not come yet */
	OUTCOME_RELEASED,  /* a first fragment: sent in again, ahead of those that were held */
};

struct trace_connection {
	struct connection_key key;
	struct connection value;
};

/* What an event means. */
struct trace_words {
	enum trace_outcome outcome;
	const char *reason;  /* of a drop: the counter's name without "drop_"; NULL: none */
	const char *meaning; /* a sentence about it */
	const char *kind;    /* of the connection; NULL: there is none */
	bool is_new;
	const struct container_info *container; /* the connection's; NULL: not known */
	bool is_outwards;                       /* from the connection's inside */
	struct trace_connection found;          /* if there is one */
	char out[IF_NAMESIZE];                  /* on the fast path: where it goes; "": not known */
};

void trace_words_of(struct view *view, const struct trace_event *event, struct trace_words *words);
/* Returns "from_uplink". */
const char *trace_program_name(enum trace_hook hook);
bool trace_is_ingress(enum trace_hook hook);

/* Finds the connection of a packet that the IP stack sees with this tuple. */
bool trace_find_connection(const struct view *view, enum protocol protocol,
			   const struct trace_tuple *tuple, enum way way,
			   struct trace_connection *found);

/* Prints "tcp S 192.0.2.10:51514 > 192.0.2.1:8080 => 10.88.0.2:80". */
void trace_print_packet(FILE *file, const struct trace_event *event);
/* Prints "fast path into vethb3f2d6e2, new mapping, default/web-0", or "DROPPED: source_range:
 * ...". */
void trace_print_words(FILE *file, const struct trace_words *words);
/* Prints "tcp S 192.0.2.10:51514 > 10.88.0.2:80  DROPPED: NETFILTER_DROP at nf_hook_slow+0xa3
 * (FORWARD)". */
void trace_print_drop(FILE *file, struct kernel_names *names, const struct trace_drop *drop);

/* Return new references. */
json_t *trace_event_json(const struct view *view, const struct trace_event *event,
			 const struct trace_words *words);
json_t *trace_drop_json(const struct view *view, struct kernel_names *names,
			const struct trace_drop *drop);
