/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * main.c - runs the command that CNI_COMMAND names for a container runtime, and prints its error;
 * or the one that a person typed (operator/verbs.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "cni/environment.h"
#include "lib/error.h"
#include "lib/io.h"
#include "lib/json.h"
#include "cni/network_config.h"
#include "cni/reply.h"
#include "operator/verbs.h"
#include "plugin/commands.h"

/* VERSION is answered without a configuration. */
static cni_command_function *const cni_commands[] = {
	[CNI_ADD] = command_add, [CNI_DEL] = command_del,       [CNI_CHECK] = command_check,
	[CNI_GC] = command_gc,   [CNI_STATUS] = command_status,
};

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
	return command_with_reference(cni_commands[environment->command], environment, config, err);
}

int main(int argc, char **argv)
{
	struct cni_environment environment;
	struct cni_network_config config = {0};
	struct cni_error err = {0};
	int status = EXIT_SUCCESS;

	standard_streams_guard();
	cni_json_begin();
	if (argc > 1)
		return operator_run(argc - 1, argv + 1);
	cni_environment_read(&environment);
	if (environment.command == CNI_NO_COMMAND) {
		/* stdout belongs to CNI. */
		operator_print_help(stderr);
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
