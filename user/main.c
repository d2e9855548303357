/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* main.c - CNI_COMMAND, or a word on the command line -> one function; prints the one error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cni/cleanup.h"
#include "cni/environment.h"
#include "cni/error.h"
#include "cni/input.h"
#include "cni/json.h"
#include "cni/network_config.h"
#include "cni/reply.h"
#include "cni/version.h"
#include "plugin/commands.h"

#define EXIT_USAGE 2

typedef int (*command_function)(const struct cni_environment *environment,
				const struct cni_network_config *config, struct cni_error *err);

static const command_function functions[] = {
	[CNI_ADD] = command_add, [CNI_DEL] = command_del,       [CNI_CHECK] = command_check,
	[CNI_GC] = command_gc,   [CNI_STATUS] = command_status,
};

static const char usage[] =
	"It is run by a container runtime, which sets CNI_COMMAND. By hand:\n"
	"  bpf-portmap attach [INTERFACE...]\n"
	"      attaches to interfaces that came up since the last ADD, as the lists of the "
	"running\n"
	"      containers say, or to those named; repairs what somebody removed; prints what it\n"
	"      changed. Does nothing where no container was ever added. A udev rule may call it.\n"
	"  bpf-portmap drop-offload\n"
	"      lets no flow skip the IP stack until its firewall has let it through again: for "
	"who\n"
	"      changed the rules, and wants them to bite at once\n"
	"  cnirun --help\n"
	"      a runtime for lists\n";

/* For a person. stdout belongs to CNI and stays empty. */
static void introduce(void)
{
	fputs("bpf-portmap " PROGRAM_VERSION ": a chained CNI plugin that gives containers host"
	      " ports and masquerade with eBPF\nCNI versions:",
	      stderr);
	for (size_t i = 0; cni_versions[i]; i++)
		fprintf(stderr, " %s", cni_versions[i]);
	fprintf(stderr, "\n%s", usage);
}

static int read_config(const struct cni_environment *environment, struct cni_network_config *config,
		       struct cni_error *err)
{
	cleanup_free char *text = NULL;
	size_t length;

	if (cni_input_read(STDIN_FILENO, CNI_INPUT_LIMIT, "the network configuration on stdin",
			   &text, &length, err))
		return -1;
	return cni_network_config_parse(config, text, length, environment, err);
}

static int run(const struct cni_environment *environment, struct cni_network_config *config,
	       struct cni_error *err)
{
	if (cni_environment_validate(environment, err))
		return -1;
	if (environment->command == CNI_VERSION)
		return cni_reply_versions(err);
	if (read_config(environment, config, err))
		return -1;
	return functions[environment->command](environment, config, err);
}

static int run_verb(char *const *arguments, struct cni_error *err)
{
	return strcmp(arguments[0], "attach") ? command_drop_offload(err)
					      : command_attach(arguments + 1, err);
}

static bool verb_is_known(char *const *arguments)
{
	if (!strcmp(arguments[0], "attach"))
		return !arguments[1] || arguments[1][0] != '-';
	return !strcmp(arguments[0], "drop-offload") && !arguments[1];
}

static int run_by_hand(char *const *arguments)
{
	struct cni_error err = {0};

	if (!strcmp(arguments[0], "--help") || !strcmp(arguments[0], "-h")) {
		introduce();
		return EXIT_SUCCESS;
	}
	if (!verb_is_known(arguments)) {
		fputs(usage, stderr);
		return EXIT_USAGE;
	}
	if (!run_verb(arguments, &err))
		return EXIT_SUCCESS;
	fprintf(stderr, "bpf-portmap: %s\n", cni_error_message(&err));
	cni_error_release(&err);
	return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	struct cni_environment environment;
	struct cni_network_config config = {0};
	struct cni_error err = {0};
	int status = EXIT_SUCCESS;

	if (argc > 1)
		return run_by_hand(argv + 1);
	cni_json_begin();
	cni_environment_read(&environment);
	if (environment.command == CNI_NO_COMMAND) {
		introduce();
		return EXIT_SUCCESS;
	}
	if (run(&environment, &config, &err)) {
		cni_reply_error(cni_network_config_reply_version(&config), &err);
		status = EXIT_FAILURE;
	}
	cni_network_config_release(&config);
	cni_error_release(&err);
	return status;
}
