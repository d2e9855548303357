/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* command_line.c - the options of a command line, by a table of them. */
#include "lib/command_line.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define LONG_OPTION 256 /* and its index: no letter has such a code */
#define SECONDS_DIGITS 6
#define LINE_LENGTH 95
#define LETTERS_SIZE (2 * COMMAND_LINE_OPTIONS + 2)

static bool is_of_set(const struct command_line *line, const struct command_option *option)
{
	return !option->set || option->set & line->set;
}

static void fill_getopt_tables(const struct command_line *line, struct option *long_options,
			       char *letters)
{
	*letters++ = ':'; /* tell a missing argument from an unknown option */
	for (int i = 0; i < line->count; i++) {
		const struct command_option *option = &line->table[i];

		if (!is_of_set(line, option))
			continue;
		long_options->name = option->name;
		long_options->has_arg = !option->argument ? no_argument
					: *option->argument == '[' && option->argument[1] == '='
						? optional_argument
						: required_argument;
		long_options->val = LONG_OPTION + i;
		long_options++;
		if (!option->letter)
			continue;
		*letters++ = option->letter;
		if (option->argument)
			*letters++ = ':';
	}
	*letters = '\0';
}

static const struct command_option *find_option(const struct command_line *line, int found)
{
	for (int i = 0; i < line->count; i++) {
		const struct command_option *option = &line->table[i];

		if ((found == LONG_OPTION + i || (option->letter && found == option->letter)) &&
		    is_of_set(line, option))
			return option;
	}
	return NULL;
}

/* For an option that getopt_long() refused, as it was typed, without its value. Uses getopt's own
 * letter where there is one, because within "-xp" getopt has not moved on to the next word. */
static int set_option_error(const struct command_line *line, int found, char **argv,
			    struct cni_error *err)
{
	bool is_long = optopt >= LONG_OPTION;
	char letter[] = {'-', (char)optopt, '\0'};
	const char *typed = optopt ? letter : argv[optind - 1];

	if (is_long)
		typed = line->table[optopt - LONG_OPTION].name;
	return cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT, "%s%s%.*s; see %s %s --help",
			     found == ':' ? "no value after "
			     : is_long    ? "no value can be given to "
					  : "unknown option ",
			     is_long ? "--" : "", (int)strcspn(typed, "="), typed, line->program,
			     argv[0]);
}

bool command_line_parse_number(const char *text, uint32_t most, uint32_t *number)
{
	size_t digits = strspn(text, "0123456789");
	unsigned long value = strtoul(text, NULL, 10);

	if (!digits || digits > 10 || text[digits] || !value || value > most)
		return false;
	*number = (uint32_t)value;
	return true;
}

static int set_number(const struct command_option *option, uint32_t *member, struct cni_error *err)
{
	if (!optarg)
		*member = option->otherwise;
	if (!optarg || command_line_parse_number(optarg, option->most, member))
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT,
			     "invalid --%s \"%.60s\": must be a number, 1 to %u", option->name,
			     optarg, option->most);
}

static int set_choice(const struct command_option *option, int *member, struct cni_error *err)
{
	const char *word = option->argument;
	size_t length;

	for (*member = 1; *word; (*member)++, word += length + (word[length] == '|')) {
		length = strcspn(word, "|");
		if (strlen(optarg) == length && !strncmp(word, optarg, length))
			return 0;
	}
	return cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT,
			     "invalid --%s \"%.60s\": must be one of %s", option->name, optarg,
			     option->argument);
}

static int set_seconds(const struct command_option *option, unsigned int *member,
		       struct cni_error *err)
{
	size_t digits = strspn(optarg, "0123456789");

	if (!digits || digits > SECONDS_DIGITS || optarg[digits])
		return cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT,
				     "invalid --%s \"%s\": must be seconds, 0 to 999999",
				     option->name, optarg);
	*member = (unsigned int)strtoul(optarg, NULL, 10);
	return 0;
}

static int set_option(const struct command_option *option, void *options, struct cni_error *err)
{
	void *member = (char *)options + option->member;

	if (option->set_value)
		return option->set_value(options, optarg, err);
	if (option->most)
		return set_number(option, member, err);
	if (option->argument && strchr(option->argument, '|'))
		return set_choice(option, member, err);
	if (option->argument && !strcmp(option->argument, "SECONDS"))
		return set_seconds(option, member, err);
	if (option->argument)
		*(const char **)member = optarg;
	else
		*(bool *)member = true;
	return 0;
}

int command_line_read(const struct command_line *line, int argc, char **argv, void *options,
		      struct cni_error *err)
{
	struct option long_options[COMMAND_LINE_OPTIONS + 1] = {0};
	char letters[LETTERS_SIZE];
	int found;

	fill_getopt_tables(line, long_options, letters);
	opterr = 0;
	optind = 0; /* in glibc: begin anew, even after another command line */
	while ((found = getopt_long(argc, argv, letters, long_options, NULL)) != -1) {
		const struct command_option *option = find_option(line, found);

		if (!option)
			return set_option_error(line, found, argv, err);
		if (set_option(option, options, err))
			return -1;
	}
	return optind;
}

void command_line_print_indented(const char *text, int blanks, FILE *file)
{
	while (*text) {
		int length = (int)strcspn(text, "\n"), room = LINE_LENGTH - blanks;

		for (int end = length > room ? room : 0; end; end--)
			if (text[end] == ' ') {
				length = end;
				break;
			}
		fprintf(file, "%*s%.*s\n", blanks, "", length, text);
		text += length;
		text += *text == '\n' || *text == ' ';
	}
}

void command_line_print_help(const struct command_line *line, FILE *file)
{
	for (int i = 0; i < line->count; i++) {
		const struct command_option *option = &line->table[i];
		const char *argument = option->argument ? option->argument : "";

		if (!is_of_set(line, option))
			continue;
		fprintf(file, "  --%s%s%s\n", option->name,
			!*argument || !strncmp(argument, "[=", 2) ? "" : " ", argument);
		command_line_print_indented(option->help, 8, file);
	}
}
