/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * main.c - a network driver for netavark, the network stack of Podman 5, made of CNI plugins:
 * bridge and bpf-portmap.
 *
 * netavark's protocol: the command is the first argument, the network namespace the second one;
 * JSON on stdin and stdout; an error is {"error": MESSAGE} and the exit status 1.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/io.h"
#include "lib/text.h"
#include "lib/json.h"
#include "cni/reply.h"
#include "cnirun/output.h"
#include "netavark/attach.h"
#include "netavark/create.h"
#include "netavark/network_options.h"

#define PROGRAM "bpf-portmap"
#define API_VERSION "1.0.0" /* of netavark's plugins; there is no other */

static int command_create(json_t *root, const char *netns, struct cni_error *err)
{
	return create_network(root, err) ? -1 : cni_reply_result(root, err);
}

static int command_setup(json_t *root, const char *netns, struct cni_error *err)
{
	return attach_setup(root, netns, cni_reply_result, err);
}

static int command_teardown(json_t *root, const char *netns, struct cni_error *err)
{
	return attach_teardown(root, netns, err);
}

static const struct driver_command {
	const char *name;
	bool wants_netns;
	int (*run)(json_t *root, const char *netns, struct cni_error *err);
} commands[] = {
	{"create", false, command_create},
	{"setup", true, command_setup},
	{"teardown", true, command_teardown},
};

static int reply_info(struct cni_error *err)
{
	cleanup_json json_t *info =
		json_pack("{s:s, s:s}", "version", PROGRAM_VERSION, "api_version", API_VERSION);

	return cni_reply_result(info, err);
}

static int print_help(struct cni_error *err)
{
	output_text(
		"usage: " PROGRAM " create|setup NETNS|teardown NETNS|info\n\n"
		"A network driver that netavark, the network stack of Podman, calls with JSON on "
		"stdin:\n"
		"  podman network create -d " PROGRAM " [-o NAME=VALUE]... web\n"
		"  podman run -p 8080:80 --network web ...\n\n"
		"What -o may give:\n");
	network_options_print_help();
	return output_flush(err);
}

/* Root of a user namespace is not root: the map of the first namespace has every user. */
static int require_root(struct cni_error *err)
{
	unsigned int inside = 1, outside = 1, count = 0;
	FILE *map = fopen("/proc/self/uid_map", "re");
	int fields = map ? fscanf(map, "%u %u %u", &inside, &outside, &count) : 0;

	if (map)
		fclose(map);
	if (!geteuid() && fields == 3 && !inside && !outside && count == UINT32_MAX)
		return 0;
	return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
			     "rootless Podman cannot use the driver " PROGRAM
			     ", because BPF programs at the host's interfaces need root: run "
			     "Podman as root, or create the network with -d bridge");
}

static int run_command(const struct driver_command *command, int argc, char **argv,
		       struct cni_error *err)
{
	cleanup_free char *text = NULL;
	cleanup_json json_t *root = NULL;
	size_t length;

	if (argc != 2 + command->wants_netns)
		return cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT,
				     "usage: " PROGRAM " %s%s, with JSON on stdin", command->name,
				     command->wants_netns ? " NETNS" : "");
	if (require_root(err))
		return -1;
	text = cni_read_all(STDIN_FILENO, CNI_INPUT_LIMIT, "stdin", &length, err);
	root = text ? cni_json_parse_object(text, length, "stdin", err) : NULL;
	return root ? command->run(root, argv[2], err) : -1;
}

static int run_command_line(int argc, char **argv, struct cni_error *err)
{
	const char *name = argc > 1 ? argv[1] : "";

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(commands[i].name, name))
			return run_command(&commands[i], argc, argv, err);
	if (!strcmp(name, "info"))
		return reply_info(err);
	if (!strcmp(name, "--help") || !strcmp(name, "-h"))
		return print_help(err);
	if (!strcmp(name, "--version")) {
		output_text("netavark-" PROGRAM " " PROGRAM_VERSION "\n");
		return output_flush(err);
	}
	return cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT,
			     "%s%s%s: netavark calls create, setup, teardown and info; see"
			     " netavark-" PROGRAM "(8)",
			     *name ? "unknown command \"" : "no command", name, *name ? "\"" : "");
}

static void reply_error(struct cni_error *err)
{
	cleanup_free char *text = cni_format("%s", cni_error_whole(err));
	cleanup_error struct cni_error failure = {0};
	cleanup_json json_t *reply = NULL;

	cni_printable(text, "\n");
	reply = json_pack("{s:s}", "error", text);
	/* After an answer that could not be written whole. */
	if (cni_reply_result(reply, &failure))
		output_error(err);
}

int main(int argc, char **argv)
{
	return output_main(argc, argv, run_command_line, reply_error);
}
