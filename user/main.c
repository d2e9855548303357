/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * main.c - the tables of commands: CNI_COMMAND chooses one for a container runtime, a word on the
 * command line one for an administrator. Prints the error.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "cni/environment.h"
#include "lib/error.h"
#include "lib/io.h"
#include "cni/json.h"
#include "cni/network_config.h"
#include "cni/reply.h"
#include "cni/version.h"
#include "plugin/commands.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* VERSION is answered without a configuration. */
static cni_command_function *const cni_commands[] = {
	[CNI_ADD] = command_add, [CNI_DEL] = command_del,       [CNI_CHECK] = command_check,
	[CNI_GC] = command_gc,   [CNI_STATUS] = command_status,
};

struct verb {
	const char *name;
	const char *operands; /* "": it takes none */
	verb_function *run;
	const char *help; /* indented, one or more lines */
};

static verb_function print_help, print_version;

static const struct verb verbs[] = {
	{"attach", " [INTERFACE...]", command_attach,
	 "      attaches to interfaces that came up since the last ADD, as the conflists of the\n"
	 "      running containers say, or to those named; repairs what somebody removed; prints\n"
	 "      what it changed. Does nothing where no container was ever added. A udev rule may\n"
	 "      call it.\n"},
	{"drop-offload", "", command_drop_offload,
	 "      lets no flow skip the IP stack until its firewall has let it through again: for\n"
	 "      anyone who changed the rules and wants them to apply at once\n"},
	{"--help", " [COMMAND]", print_help, ""},
	{"--version", "", print_version, ""},
};

static void write_help(FILE *file)
{
	fputs("bpf-portmap " PROGRAM_VERSION ": a chained CNI plugin that gives containers host"
	      " ports and masquerade with eBPF\nCNI versions:",
	      file);
	for (size_t i = 0; cni_versions[i]; i++)
		fprintf(file, " %s", cni_versions[i]);
	fputs("\nIt is run by a container runtime, which sets CNI_COMMAND. By hand:\n", file);
	for (size_t i = 0; i < COUNT(verbs); i++)
		fprintf(file, "  bpf-portmap %s%s\n%s", verbs[i].name, verbs[i].operands,
			verbs[i].help);
	fputs("  cnirun --help\n"
	      "      a runtime for conflists\n"
	      "Exit status: 0; 1 after an error, which is on stderr; 64 after a command or option\n"
	      "that does not exist.\n",
	      file);
}

static int print_help(char *const *operands, struct cni_error *err)
{
	write_help(stdout);
	return 0;
}

static int print_version(char *const *operands, struct cni_error *err)
{
	puts("bpf-portmap " PROGRAM_VERSION);
	return 0;
}

static bool is_help(const char *word)
{
	return !strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help");
}

static const struct verb *find_verb(const char *name)
{
	if (is_help(name))
		name = "--help";
	for (size_t i = 0; i < COUNT(verbs); i++)
		if (!strcmp(verbs[i].name, name))
			return &verbs[i];
	return NULL;
}

/* `verb`: whose help to read; NULL: the whole. */
static int refuse(const char *what, const char *word, const struct verb *verb)
{
	const char *quote = *word == '-' ? "" : "\"";

	fprintf(stderr, "bpf-portmap: %s %s%.60s%s; see bpf-portmap %s%s--help\n", what, quote,
		word, quote, verb ? verb->name : "", verb ? " " : "");
	return EX_USAGE;
}

/* Output counts only if it arrives. */
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
	char what[32];

	for (char *const *word = operands; *word; word++)
		if (is_help(*word) && **word == '-')
			return explain(verb);
	for (char *const *word = operands; *word; word++)
		if (**word == '-')
			return refuse("unknown option", *word, verb);
	snprintf(what, sizeof(what), "%s takes no", verb->name);
	if (*operands && !*verb->operands)
		return refuse(what, *operands, verb);
	if (!verb->run(operands, &err))
		return flush();
	fflush(stdout);
	fprintf(stderr, "bpf-portmap: %s\n", cni_error_message(&err));
	cni_error_release(&err);
	return EXIT_FAILURE;
}

/* `help attach` is `attach --help`. */
static int run_by_hand(char *const *words)
{
	bool explains = is_help(words[0]) && words[1] && !is_help(words[1]);
	const char *name = words[explains];
	const struct verb *verb = find_verb(name);

	if (!verb)
		return refuse(*name == '-' ? "unknown option" : "unknown command", name, NULL);
	return explains ? explain(verb) : run_verb(verb, words + 1);
}

static int run_cni_command(const struct cni_environment *environment,
			   struct cni_network_config *config, struct cni_error *err)
{
	cleanup_free char *text = NULL;
	size_t length;

	if (cni_environment_validate(environment, err))
		return -1;
	if (environment->command == CNI_VERSION)
		return cni_reply_versions(err);
	text = cni_read_all(STDIN_FILENO, CNI_INPUT_LIMIT, "the network configuration on stdin",
			    &length, err);
	if (!text || cni_network_config_parse(config, text, length, environment, err))
		return -1;
	return cni_commands[environment->command](environment, config, err);
}

int main(int argc, char **argv)
{
	struct cni_environment environment;
	struct cni_network_config config = {0};
	struct cni_error err = {0};
	int status = EXIT_SUCCESS;

	standard_streams_guard();
	if (argc > 1)
		return run_by_hand(argv + 1);
	cni_json_begin();
	cni_environment_read(&environment);
	if (environment.command == CNI_NO_COMMAND) {
		/* stdout belongs to CNI. */
		write_help(stderr);
		return EXIT_SUCCESS;
	}
	if (run_cni_command(&environment, &config, &err)) {
		cni_reply_error(cni_network_config_reply_version(&config), &err);
		status = EXIT_FAILURE;
	}
	cni_network_config_release(&config);
	cni_error_release(&err);
	return status;
}
