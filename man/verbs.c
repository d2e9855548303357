/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * verbs.c - fills in a manual page what the tables of verbs and options say. A line "@synopsis@"
 * becomes a line for each verb; "@list@" the heading of that verb, its help and the options that
 * few verbs have; "@options@" those that every verb with a table has. Reads stdin, writes stdout;
 * 1 if the page does not have each verb once.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "operator/verbs.h"

#define MAX_VERBS 64
#define LINE_SIZE 512

static unsigned int seen[MAX_VERBS];

/* Hyphens stay what a shell takes, and no line begins a request. */
static void print_text(const char *text)
{
	for (; *text; text++) {
		if (*text == '-' || *text == '\\')
			putchar('\\');
		if (text[0] == '\n' && (text[1] == '.' || text[1] == '\''))
			fputs("\n\\&", stdout);
		else
			putchar(*text);
	}
}

static void print_sentence(const char *help)
{
	putchar(toupper((unsigned char)*help));
	print_text(help + 1);
	puts(help[strlen(help) - 1] == '.' ? "" : ".");
}

static void print_usage(const char *request, const char *before, const struct verb *verb)
{
	printf("%s \"%s", request, before);
	print_text(verb->name);
	print_text(verb->operands);
	printf("%s\"\n", verb->options ? " [OPTION...]" : "");
}

static void print_option(const struct command_option *option)
{
	const char *argument = option->argument ? option->argument : "";

	printf(".TP\n.B \\-\\-");
	print_text(option->name);
	if (*argument && strncmp(argument, "[=", 2) != 0)
		putchar(' ');
	print_text(argument);
	putchar('\n');
	print_sentence(option->help);
}

/* The options whose set is one of `wanted`. */
static void print_options(unsigned int wanted)
{
	struct command_line line = options_of(~0U);

	for (int i = 0; i < line.count; i++)
		if (line.table[i].set & wanted)
			print_option(&line.table[i]);
}

/* False: there is no such verb. */
static bool fill_in(const char *name)
{
	if (!strcmp(name, "options")) {
		print_options(OPTIONS_OUTPUT);
		return true;
	}
	for (size_t i = 0; i < verb_count; i++) {
		if (!strcmp(name, "synopsis")) {
			print_usage(i ? ".br\n.B" : ".B", "bpf\\-portmap ", &verbs[i]);
		} else if (!strcmp(name, verbs[i].name)) {
			seen[i]++;
			print_usage(".SS", "", &verbs[i]);
			print_sentence(verbs[i].help);
			print_options(verbs[i].options & ~(unsigned int)OPTIONS_OUTPUT);
			puts(".PP");
			return true;
		}
	}
	return !strcmp(name, "synopsis");
}

int main(void)
{
	char line[LINE_SIZE];
	int result = 0;

	while (fgets(line, sizeof(line), stdin)) {
		char name[LINE_SIZE];

		if (sscanf(line, "@%[^@\n]@", name) != 1) {
			fputs(line, stdout);
		} else if (!fill_in(name)) {
			fprintf(stderr, "verbs: %s is no verb\n", name);
			return 1;
		}
	}
	for (size_t i = 0; i < verb_count; i++) {
		if (seen[i] == 1)
			continue;
		fprintf(stderr, "verbs: %s is %u times in the page\n", verbs[i].name, seen[i]);
		result = 1;
	}
	return result;
}
