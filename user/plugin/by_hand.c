/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* by_hand.c - commands for administrators: finds the one that is meant, and explains them. */
#include "plugin/by_hand.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "cni/version.h"
#include "plugin/commands.h"

struct verb {
	const char *name;
	const char *operands; /* "": it takes none */
	int (*run)(char *const *operands, struct cni_error *err);
	const char *help; /* indented, one or more lines */
};

static int run_drop_offload(char *const *operands, struct cni_error *err)
{
	(void)operands;
	return command_drop_offload(err);
}

static const struct verb verbs[] = {
	{"attach", " [INTERFACE...]", command_attach,
	 "      attaches to interfaces that came up since the last ADD, as the conflists of the\n"
	 "      running containers say, or to those named; repairs what somebody removed; prints\n"
	 "      what it changed. Does nothing where no container was ever added. A udev rule may\n"
	 "      call it.\n"},
	{"drop-offload", "", run_drop_offload,
	 "      lets no flow skip the IP stack until its firewall has let it through again: for\n"
	 "      anyone who changed the rules and wants them to apply at once\n"},
};

#define VERB_COUNT (sizeof(verbs) / sizeof(verbs[0]))

static void print_help(FILE *file)
{
	fputs("bpf-portmap " PROGRAM_VERSION ": a chained CNI plugin that gives containers host"
	      " ports and masquerade with eBPF\nCNI versions:",
	      file);
	for (size_t i = 0; cni_versions[i]; i++)
		fprintf(file, " %s", cni_versions[i]);
	fputs("\nIt is run by a container runtime, which sets CNI_COMMAND. By hand:\n", file);
	for (size_t i = 0; i < VERB_COUNT; i++)
		fprintf(file, "  bpf-portmap %s%s\n%s", verbs[i].name, verbs[i].operands,
			verbs[i].help);
	fputs("  bpf-portmap --version\n"
	      "  cnirun --help\n"
	      "      a runtime for conflists\n"
	      "Exit status: 0; 1 after an error, which is on stderr; 64 after a command or option\n"
	      "that does not exist.\n",
	      file);
}

void by_hand_introduce(void)
{
	print_help(stderr);
}

static bool is_help(const char *word)
{
	return !strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help");
}

static const struct verb *find_verb(const char *name)
{
	for (size_t i = 0; i < VERB_COUNT; i++)
		if (!strcmp(verbs[i].name, name))
			return &verbs[i];
	return NULL;
}

static int refuse(const char *what, const char *word, const char *verb)
{
	fprintf(stderr, "bpf-portmap: %s %s; see bpf-portmap %s%s--help\n", what, word, verb,
		*verb ? " " : "");
	return EX_USAGE;
}

static int refuse_quoted(const char *what, const char *word, const char *verb)
{
	char quoted[64];

	snprintf(quoted, sizeof(quoted), "\"%.60s\"", word);
	return refuse(what, quoted, verb);
}

static int refuse_operand(const struct verb *verb, const char *word)
{
	char what[32];

	snprintf(what, sizeof(what), "%s takes no", verb->name);
	return refuse_quoted(what, word, verb->name);
}

/* What is printed counts only if it arrives. */
static int flush(void)
{
	return fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int explain(const struct verb *verb)
{
	printf("usage: bpf-portmap %s%s\n%s", verb->name, verb->operands, verb->help);
	return flush();
}

static int run_verb(const struct verb *verb, char *const *operands)
{
	struct cni_error err = {0};

	for (char *const *word = operands; *word; word++)
		if (!strcmp(*word, "--help") || !strcmp(*word, "-h"))
			return explain(verb);
	for (char *const *word = operands; *word; word++)
		if (**word == '-')
			return refuse("unknown option", *word, verb->name);
	if (*operands && !*verb->operands)
		return refuse_operand(verb, *operands);
	if (!verb->run(operands, &err))
		return flush();
	fflush(stdout);
	fprintf(stderr, "bpf-portmap: %s\n", cni_error_message(&err));
	cni_error_release(&err);
	return EXIT_FAILURE;
}

int by_hand_run(char *const *arguments)
{
	bool wants_help = is_help(arguments[0]);
	const char *name = wants_help && arguments[1] ? arguments[1] : arguments[0];
	const struct verb *verb = find_verb(name);

	if (!strcmp(name, "--version")) {
		puts("bpf-portmap " PROGRAM_VERSION);
		return flush();
	}
	if (is_help(name)) {
		print_help(stdout);
		return flush();
	}
	if (!verb)
		return *name == '-' ? refuse("unknown option", name, "")
				    : refuse_quoted("unknown command", name, "");
	return wants_help ? explain(verb) : run_verb(verb, arguments + 1);
}
