/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* story.c - the steps of a dry run. */
#include "operator/trace/story.h"

#include <stdarg.h>
#include <string.h>

#include "lib/cleanup.h"
#include "lib/text.h"

static void add_item(struct story *story, const char *place, json_t *body)
{
	json_t *item = json_pack("{s:i, s:s}", "step", story->steps, "place", place);

	json_object_update(item, body);
	json_decref(body);
	if (items_add(&story->items, item, story->err))
		story->failed = true;
}

void story_event(struct story *story, const struct trace_event *event,
		 const struct trace_words *words)
{
	const char *direction = trace_is_ingress(event->hook) ? "in" : "out";
	char interface[IF_NAMESIZE], place[IF_NAMESIZE + 8];

	if (story->failed)
		return;
	story->steps++;
	view_interface(story->view, event->ifindex, interface);
	snprintf(place, sizeof(place), "%s %s", interface, direction);
	if (story->json) {
		add_item(story, place, trace_event_json(story->view, event, words));
		return;
	}
	printf("%-2d %-16s %-15s ", story->steps, place, trace_program_name(event->hook));
	trace_print_packet(stdout, event);
	fputs("  ", stdout);
	if (words->outcome == OUTCOME_DROPPED)
		terminal_begin_warning(story->color);
	trace_print_words(stdout, words);
	if (words->outcome == OUTCOME_DROPPED)
		terminal_end_warning(story->color);
	putchar('\n');
}

void story_say(struct story *story, const char *place, json_t *more, const char *format, ...)
{
	cleanup_free char *text = NULL;
	va_list arguments;

	va_start(arguments, format);
	text = cni_format_list(format, arguments);
	va_end(arguments);
	if (story->failed) {
		json_decref(more);
		return;
	}
	story->steps++;
	cni_printable(text, "");
	if (!story->json) {
		json_decref(more);
		printf("%-2d %-16s %-15s %s\n", story->steps, place, "", text);
		return;
	}
	if (!more)
		more = json_object();
	json_object_set_new(more, "says", json_string(text));
	add_item(story, place, more);
}

int story_end(struct story *story, bool is_same, bool incomplete)
{
	if (story->failed)
		return -1;
	if (story->json)
		return items_end(&story->items,
				 json_pack("{s:b, s:b}", "same_programs", (int)is_same,
					   "copies_complete", (int)!incomplete),
				 story->err);
	if (!is_same)
		puts("The programs that run on this host are of another build: they may decide"
		     " otherwise.");
	if (incomplete)
		puts("Not everything in the maps could be copied: the tables may be fuller than"
		     " they were here.");
	return 0;
}
