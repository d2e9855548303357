/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* run_program.c - runs a program that is no CNI plugin. */
#include "netavark/run_program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

int run_program(const char *const *arguments)
{
	posix_spawn_file_actions_t actions;
	int status = -1;
	pid_t child;

	posix_spawn_file_actions_init(&actions);
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
	posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
	if (!posix_spawnp(&child, arguments[0], &actions, NULL, (char *const *)arguments, environ))
		waitpid(child, &status, 0);
	posix_spawn_file_actions_destroy(&actions);
	return status ? -1 : 0;
}
