/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * interleave.c - a scheduler that makes races happen: it runs a command, stops it right before its
 * Nth system call that other processes can notice, runs another command meanwhile, and lets the
 * first one continue.
 *
 * usage: interleave N MEANWHILE COMMAND [ARGUMENT...]
 *
 * MEANWHILE, a program without arguments, runs until it exits, or until it waits for the lock that
 * the stopped command holds. Exits with the command's status, or with that of MEANWHILE if the
 * command succeeded; with 99 if the command made fewer than N such calls and MEANWHILE never ran.
 */
#include <fcntl.h>

#include "traced.h"

#define EXIT_TOO_FEW_CALLS 99

/* Maps and programs, netlink, the lock; or files */
static bool others_notice(long call)
{
	if (getenv("FILES"))
		return traced_is_of_files(call);
	return call == __NR_bpf || call == __NR_sendmsg || call == __NR_sendto ||
	       call == __NR_flock;
}

static bool waits_for_lock(pid_t process)
{
	char path[64], text[64] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/syscall", process);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	close(fd);
	/* "running" while it is not blocked */
	return text[0] >= '0' && text[0] <= '9' && strtol(text, NULL, 10) == __NR_flock;
}

/* Returns the process if it waits for the lock, or 0 and its status. */
static pid_t run_meanwhile(char *program, int *status)
{
	char *command[] = {program, NULL};
	pid_t child = command_start(command, false);

	for (;;) {
		pid_t ended = waitpid(child, status, WNOHANG);

		if (ended < 0)
			tracer_die("waitpid");
		if (ended)
			return 0;
		if (waits_for_lock(child))
			return child;
		usleep(200);
	}
}

int main(int argc, char **argv)
{
	long left = argc > 3 ? atol(argv[1]) : 0;
	int status, meanwhile = 0;
	pid_t child, waiting = 0;

	if (left < 1) {
		fprintf(stderr, "usage: interleave N MEANWHILE COMMAND [ARGUMENT...]\n");
		return EXIT_TRACER;
	}
	child = traced_start(argv + 3, &status);
	while (WIFSTOPPED(status)) {
		if (others_notice(traced_call(child, status)) && --left == 0)
			waiting = run_meanwhile(argv[2], &meanwhile);
		status = traced_continue(child, status);
	}
	if (waiting && waitpid(waiting, &meanwhile, 0) != waiting)
		tracer_die("waitpid");
	if (left > 0)
		return EXIT_TOO_FEW_CALLS;
	return exit_code_of(status) ? exit_code_of(status) : exit_code_of(meanwhile);
}
