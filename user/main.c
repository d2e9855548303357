/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* main.c - CNI_COMMAND, or a word on the command line -> one function; prints the one error. */
#include <stdlib.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "cni/environment.h"
#include "lib/error.h"
#include "lib/io.h"
#include "cni/json.h"
#include "cni/network_config.h"
#include "cni/reply.h"
#include "plugin/by_hand.h"
#include "plugin/commands.h"

typedef int (*command_function)(const struct cni_environment *environment,
				const struct cni_network_config *config, struct cni_error *err);

static const command_function functions[] = {
	[CNI_ADD] = command_add, [CNI_DEL] = command_del,       [CNI_CHECK] = command_check,
	[CNI_GC] = command_gc,   [CNI_STATUS] = command_status,
};

static int read_config(const struct cni_environment *environment, struct cni_network_config *config,
		       struct cni_error *err)
{
	size_t length;
	cleanup_free char *text = cni_read_all(STDIN_FILENO, CNI_INPUT_LIMIT,
					       "the network configuration on stdin", &length, err);

	if (!text)
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

int main(int argc, char **argv)
{
	struct cni_environment environment;
	struct cni_network_config config = {0};
	struct cni_error err = {0};
	int status = EXIT_SUCCESS;

	standard_streams_guard();
	if (argc > 1)
		return by_hand_run(argv + 1);
	cni_json_begin();
	cni_environment_read(&environment);
	if (environment.command == CNI_NO_COMMAND) {
		by_hand_introduce();
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
