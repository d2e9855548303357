/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* isolation.c - removes rules by iptables, as the plugin firewall makes them. */
#include "netavark/isolation.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#define COMMENT "CNI firewall plugin rules (ingressPolicy: same-bridge)"
#define STAGE_1 "CNI-ISOLATION-STAGE-1"
#define STAGE_2 "CNI-ISOLATION-STAGE-2"
#define LOCK_SECONDS "5" /* for iptables of others to end */

/* What it says is not shown: mostly that there is no such rule. */
static void run_silently(char *const *arguments)
{
	posix_spawn_file_actions_t actions;
	pid_t child;

	posix_spawn_file_actions_init(&actions);
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
	if (!posix_spawnp(&child, arguments[0], &actions, NULL, arguments, environ))
		waitpid(child, NULL, 0);
	posix_spawn_file_actions_destroy(&actions);
}

static void remove_rules(const char *program, const char *bridge)
{
	const char *const stage_1[] = {program, "-w",      LOCK_SECONDS, "-D",    STAGE_1, "-i",
				       bridge,  "!",       "-o",         bridge,  "-j",    STAGE_2,
				       "-m",    "comment", "--comment",  COMMENT, NULL};
	const char *const stage_2[] = {program,   "-w",        LOCK_SECONDS, "-D",   STAGE_2,
				       "-o",      bridge,      "-j",         "DROP", "-m",
				       "comment", "--comment", COMMENT,      NULL};

	run_silently((char *const *)stage_1);
	run_silently((char *const *)stage_2);
}

void isolation_remove(const char *bridge)
{
	remove_rules("iptables", bridge);
	remove_rules("ip6tables", bridge);
}
