/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* nft_command.c - the firewall's rules as nft prints them. */
#include "operator/doctor/nft_command.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cni/json.h"
#include "lib/cleanup.h"
#include "lib/error.h"
#include "lib/io.h"
#include "lib/text.h"

/* 10,000 rules are about 5 MB. */
#define RULESET_LIMIT ((size_t)64 << 20)

static int spawn(int output, pid_t *pid)
{
	char *arguments[] = {"nft", "-j", "list", "ruleset", NULL};
	char *environment[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin", "LC_ALL=C",
			       NULL};
	posix_spawn_file_actions_t actions;
	int error;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	/* Our own PATH may lack the directories of administrators' programs. */
	setenv("PATH", environment[0] + strlen("PATH="), 1);
	error = posix_spawnp(pid, arguments[0], &actions, NULL, arguments, environment);
	posix_spawn_file_actions_destroy(&actions);
	return error;
}

static char *read_output(size_t *length, char **why)
{
	cleanup_error struct cni_error err = {0};
	char *text = NULL;
	int pipes[2], error, status = 0;
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC)) {
		*why = cni_format("%s", strerror(errno));
		return NULL;
	}
	error = spawn(pipes[1], &pid);
	close(pipes[1]);
	if (!error) {
		text = cni_read_all(pipes[0], RULESET_LIMIT, "what nft prints", length, &err);
		waitpid(pid, &status, 0);
	}
	close(pipes[0]);
	if (error)
		*why = cni_format("nft does not start: %s", strerror(error));
	else if (!text)
		*why = cni_format("%s", cni_error_message(&err));
	else if (!*length)
		*why = cni_format("nft -j list ruleset fails with status %d", WEXITSTATUS(status));
	if (!*why)
		return text;
	free(text);
	return NULL;
}

json_t *nft_command_read(char **why)
{
	size_t length = 0;
	cleanup_free char *text = read_output(&length, why);
	cleanup_json json_t *whole = NULL;
	json_t *ruleset;
	json_error_t error;

	if (!text)
		return NULL;
	cni_json_begin();
	whole = json_loadb(text, length, 0, &error);
	ruleset = json_object_get(whole, "nftables");
	if (json_is_array(ruleset))
		return json_incref(ruleset);
	*why = cni_format("nft prints no JSON: %s", error.text);
	return NULL;
}
