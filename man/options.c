/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * options.c - fills in a manual page what the table of options says. A line "@ipMasq@", or
 * "@ipMasq4 ipMasq6@" for options that differ by name alone, becomes the head of a paragraph: the
 * names, the values, the default, and the line of help. Reads stdin, writes stdout; 1 if the page
 * does not have each option once.
 */
#include <stdio.h>
#include <string.h>

#include "conf/option_table.h"

#define MAX_OPTIONS 64
#define LINE_SIZE 512

static unsigned int seen[MAX_OPTIONS];

static const struct option *find(const char *name)
{
	for (size_t i = 0; conf_options[i].name; i++) {
		if (!strcmp(conf_options[i].name, name)) {
			seen[i]++;
			return &conf_options[i];
		}
	}
	return NULL;
}

static void print_values(const struct option *option)
{
	static const char *const texts[] = {
		[OPTION_BOOLEAN] = "true or false",
		[OPTION_PORTS] = "ports",
		[OPTION_RANGES] = "array of ranges",
		[OPTION_ADDRESSES] = "array of addresses",
		[OPTION_INTERFACES] = "array of names or globs",
		[OPTION_IGNORED_NUMBER] = "a number",
		[OPTION_IGNORED_STRING] = "a string",
		[OPTION_REFUSED] = "an empty array",
	};
	char choices[CHOICES_TEXT_SIZE];

	if (option->type == OPTION_NUMBER)
		printf("%u to %u", option->limits.least, option->limits.most);
	else if (option->type == OPTION_CHOICE)
		printf("%s", option_list_choices(option->choices, choices));
	else
		printf("%s", texts[option->type]);
}

static void print_head(const struct option *option)
{
	printf(" (");
	print_values(option);
	if (option->fallback)
		printf("; default: as %s", option->fallback);
	else if (option->preset || option->otherwise)
		printf("; default: %s", option->preset ? option->preset : option->otherwise);
	printf(")\n%s\n", option->help);
}

/* False: there is no such option. */
static bool fill_in(char *line)
{
	const struct option *option, *first = NULL;

	printf(".TP\n");
	for (char *name = strtok(line, "@ \n"); name; name = strtok(NULL, "@ \n")) {
		option = find(name);
		if (!option || (first && first->type != option->type)) {
			fprintf(stderr, "options: %s %s\n", name,
				option ? "takes other values" : "is no option");
			return false;
		}
		printf("%s\\fI%s\\fR", first ? ", " : "", name);
		first = first ? first : option;
	}
	if (first)
		print_head(first);
	return first;
}

int main(void)
{
	char line[LINE_SIZE];
	int result = 0;

	while (fgets(line, sizeof(line), stdin)) {
		if (*line != '@')
			fputs(line, stdout);
		else if (!fill_in(line))
			return 1;
	}
	for (size_t i = 0; conf_options[i].name; i++) {
		if (seen[i] == 1)
			continue;
		fprintf(stderr, "options: %s is %u times in the page\n", conf_options[i].name,
			seen[i]);
		result = 1;
	}
	return result;
}
