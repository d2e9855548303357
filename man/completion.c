/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * completion.c - prints what a shell needs to complete commands and options, from their tables. Its
 * argument is bash, zsh or fish.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operator/verbs.h"

#define SUMMARY_SIZE 160

/* What a help text says first, on one line, without what a shell would not take as it is. */
static const char *summarize(const char *help, char text[SUMMARY_SIZE])
{
	size_t length = strcspn(help, ":;.(");

	if (length >= SUMMARY_SIZE)
		length = SUMMARY_SIZE - 1;
	while (length && help[length - 1] == ' ')
		length--;
	memcpy(text, help, length);
	text[length] = '\0';
	for (char *at = text; *at; at++)
		if (strchr("\n'[]", *at))
			*at = ' ';
	return text;
}

/* "a|b|c": the words to choose from. */
static bool is_choice(const char *argument)
{
	return argument && strchr(argument, '|');
}

static void print_choices(const char *argument)
{
	for (; *argument; argument++)
		putchar(*argument == '|' ? ' ' : *argument);
}

static bool has_option(const struct verb *verb, const struct command_option *option)
{
	return !option->set || option->set & verb->options;
}

static const char *argument_of(const struct command_option *option)
{
	return option->argument ? option->argument : "";
}

/* "--watch[=SECONDS]" may stand alone. */
static bool needs_argument(const struct command_option *option)
{
	return *argument_of(option) && *option->argument != '[';
}

static void print_verb_names(void)
{
	for (size_t i = 0; i < verb_count; i++)
		printf("%s ", verbs[i].name);
	printf("help");
}

#define OF_LIST "bpf-portmap list 2>/dev/null | awk "

/* The command that prints what there is on this host of such a thing; NULL: none does. */
static const char *command_for(const char *thing)
{
	static const struct {
		const char *thing, *command;
	} commands[] = {
		{"PORT[",
		 OF_LIST "\"NR > 1 && sub(/.*:/, \\\"\\\", \\$1) { print \\$1 \\\"/\\\" \\$2 }\""
			 " | sort -u"},
		{"NAME", OF_LIST "\"NR > 1 { print \\$3 }\" | sort -u"},
		{"WHO", OF_LIST "\"NR > 1 { print \\$3 }\" | sort -u; echo localhost"},
		{"INTERFACE", "ls /sys/class/net"},
	};

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strstr(thing, commands[i].thing))
			return commands[i].command;
	return NULL;
}

static const char *command_of(const struct command_option *option)
{
	/* Networks have names, too. */
	return strcmp(option->name, "network") ? command_for(argument_of(option)) : NULL;
}

/* Behind words. */
static void print_bash_command(const char *command)
{
	if (command)
		printf("\" $(%s)\"", command);
}

static void print_bash(const struct command_line *line)
{
	puts("_bpf_portmap()\n{\n"
	     "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=\n"
	     "\t[ \"$prev\" != = ] || prev=${COMP_WORDS[COMP_CWORD-2]}\n"
	     "\t[ \"$cur\" != = ] || cur=\n"
	     "\tcase $prev in");
	for (int i = 0; i < line->count; i++) {
		const struct command_option *option = &line->table[i];

		if (!needs_argument(option))
			continue;
		printf("\t--%s) words='", option->name);
		if (is_choice(option->argument))
			print_choices(option->argument);
		putchar('\'');
		print_bash_command(command_of(option));
		puts(" ;;");
	}
	printf("\t*) case $COMP_CWORD:${COMP_WORDS[1]} in\n\t\t1:*) words='");
	print_verb_names();
	printf(" --help --version' ;;\n\t\t*:help) words='");
	print_verb_names();
	puts("' ;;");
	for (size_t i = 0; i < verb_count; i++) {
		const struct verb *verb = &verbs[i];

		printf("\t\t*:%s) words='", verb->name);
		for (int j = 0; j < line->count; j++)
			if (has_option(verb, &line->table[j]))
				printf(" --%s", line->table[j].name);
		putchar('\'');
		print_bash_command(command_for(verb->operands));
		puts(" ;;");
	}
	puts("\t\tesac ;;\n\tesac\n"
	     "\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n}\n"
	     "complete -F _bpf_portmap bpf-portmap");
}

/* A colon ends a field, unless it is escaped. */
static void print_zsh_field(const char *text)
{
	for (; *text; text++)
		printf("%s%c", *text == ':' ? "\\" : "", *text);
}

static void print_zsh_argument(const char *message, const char *command)
{
	putchar(':');
	print_zsh_field(message);
	putchar(':');
	if (!command)
		return;
	printf("{compadd -- $(");
	print_zsh_field(command);
	printf(")}");
}

static void print_zsh_options(const struct verb *verb, const struct command_line *line)
{
	char text[SUMMARY_SIZE];

	for (int i = 0; i < line->count; i++) {
		const struct command_option *option = &line->table[i];

		if (!has_option(verb, option))
			continue;
		printf(" \\\n\t\t\t'--%s%s[%s]", option->name, needs_argument(option) ? "=" : "",
		       summarize(option->help, text));
		if (needs_argument(option))
			print_zsh_argument(is_choice(option->argument) ? option->name
								       : option->argument,
					   command_of(option));
		if (is_choice(option->argument)) {
			putchar('(');
			print_choices(option->argument);
			putchar(')');
		}
		putchar('\'');
	}
}

static void print_zsh(const struct command_line *line)
{
	char text[SUMMARY_SIZE];

	puts("#compdef bpf-portmap\n_bpf_portmap()\n{\n\tlocal -a verbs\n\tverbs=(");
	for (size_t i = 0; i < verb_count; i++)
		printf("\t\t'%s:%s'\n", verbs[i].name, summarize(verbs[i].summary, text));
	puts("\t)\n\tif (( CURRENT == 2 )); then\n\t\t_describe command verbs\n\t\treturn\n\tfi\n"
	     "\tlocal verb=$words[2]\n\tshift words\n\t(( CURRENT-- ))\n\tcase $verb in");
	for (size_t i = 0; i < verb_count; i++) {
		printf("\t%s) _arguments", verbs[i].name);
		print_zsh_options(&verbs[i], line);
		if (command_for(verbs[i].operands)) {
			printf(" \\\n\t\t\t'*");
			print_zsh_argument(verbs[i].operands + 1, command_for(verbs[i].operands));
			putchar('\'');
		}
		puts(" ;;");
	}
	puts("\tesac\n}\n_bpf_portmap \"$@\"");
}

static void print_fish_command(const char *command)
{
	if (command)
		printf(" -a '(%s)'", command);
}

static void print_fish(const struct command_line *line)
{
	static const char complete[] = "complete -c bpf-portmap";
	char text[SUMMARY_SIZE];

	printf("%s -f\n", complete);
	for (size_t i = 0; i < verb_count; i++) {
		const struct verb *verb = &verbs[i];

		printf("%s -n __fish_use_subcommand -a %s -d '%s'\n", complete, verb->name,
		       summarize(verb->summary, text));
		if (command_for(verb->operands)) {
			printf("%s -n '__fish_seen_subcommand_from %s'", complete, verb->name);
			print_fish_command(command_for(verb->operands));
			putchar('\n');
		}
		for (int j = 0; j < line->count; j++) {
			const struct command_option *option = &line->table[j];

			if (!has_option(verb, option))
				continue;
			printf("%s -n '__fish_seen_subcommand_from %s' -l %s%s", complete,
			       verb->name, option->name, needs_argument(option) ? " -x" : "");
			if (is_choice(option->argument)) {
				printf(" -a '");
				print_choices(option->argument);
				putchar('\'');
			}
			print_fish_command(command_of(option));
			printf(" -d '%s'\n", summarize(option->help, text));
		}
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*print)(const struct command_line *line);
	} shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
	struct command_line line = options_of(~0U);

	for (size_t i = 0; argc == 2 && i < sizeof(shells) / sizeof(shells[0]); i++) {
		if (strcmp(shells[i].name, argv[1]) != 0)
			continue;
		shells[i].print(&line);
		return fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
	}
	fputs("usage: completion bash|zsh|fish\n", stderr);
	return EXIT_FAILURE;
}
