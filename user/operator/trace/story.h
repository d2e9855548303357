/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* story.h - the steps of a dry run, for people, or as JSON. */
#ifndef OPERATOR_TRACE_STORY_H
#define OPERATOR_TRACE_STORY_H

#include "operator/print/items.h"
#include "operator/print/terminal.h"
#include "operator/trace/words.h"

/* Begins as {.json = ..., .view = ..., .items = {.file = stdout}}. */
struct story {
	bool json;
	enum color color;
	struct view *view;
	struct items items;
	int steps;
	bool failed; /* err of the call that failed is set */
	struct cni_error *err;
};

/* What a program did. */
void story_event(struct story *story, const struct trace_event *event,
		 const struct trace_words *words);
/* Another step. `more`, stolen, has further keys of the JSON; NULL: none. */
void story_say(struct story *story, const char *place, json_t *more, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* is_same: the programs were those that run on this host. 0, or -1 where a step failed. */
int story_end(struct story *story, bool is_same, bool incomplete);

#endif
