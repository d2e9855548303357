/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * interleave.c - a scheduler with the worst intentions: runs a command, stops it right before
 * its Nth system call that others could notice, runs another one meanwhile, and lets it go on.
 *
 * usage: interleave N MEANWHILE COMMAND [ARGUMENT...]
 *
 * MEANWHILE, a program without arguments, runs to its end, or until it waits for the lock that
 * the stopped command holds. Exits with the command's status, else with MEANWHILE's; with 99 if
 * the command made fewer such calls than N, and MEANWHILE never ran. x86-64 and arm64.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOT_SO_MANY 99

static void die(const char *what)
{
	fprintf(stderr, "interleave: %s: %s\n", what, strerror(errno));
	exit(126);
}

static pid_t start(char **command, bool traced)
{
	pid_t child = fork();

	if (child < 0)
		die("fork");
	if (child)
		return child;
	if (traced && ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		die("ptrace");
	execvp(command[0], command);
	die(command[0]);
	return -1;
}

/* Maps, programs, netlink, the lock. */
static bool others_notice(unsigned long long call)
{
	return call == __NR_bpf || call == __NR_sendmsg || call == __NR_sendto ||
	       call == __NR_flock;
}

static bool begins_such_call(pid_t child)
{
	struct __ptrace_syscall_info info = {0};

	if (ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof(info), &info) < 0)
		die("PTRACE_GET_SYSCALL_INFO");
	return info.op == PTRACE_SYSCALL_INFO_ENTRY && others_notice(info.entry.nr);
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

static int status_of(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The process, while it waits for the lock, or 0 and its status. */
static pid_t run_meanwhile(char *program, int *status)
{
	char *command[] = {program, NULL};
	pid_t child = start(command, false);

	for (;;) {
		pid_t ended = waitpid(child, status, WNOHANG);

		if (ended < 0)
			die("waitpid");
		if (ended)
			return 0;
		if (waits_for_lock(child))
			return child;
		usleep(200);
	}
}

/* What a stop hands on to the command when it goes on. */
static int signal_of(int status)
{
	int signal = WSTOPSIG(status);

	return signal == SIGTRAP || signal == (SIGTRAP | 0x80) ? 0 : signal;
}

static int go_on(pid_t child, int status)
{
	if (ptrace(PTRACE_SYSCALL, child, NULL, (long)signal_of(status)))
		die("PTRACE_SYSCALL");
	if (waitpid(child, &status, 0) != child)
		die("waitpid");
	return status;
}

static bool is_stopped_at_call(pid_t child, int status)
{
	return WIFSTOPPED(status) && WSTOPSIG(status) == (SIGTRAP | 0x80) &&
	       begins_such_call(child);
}

int main(int argc, char **argv)
{
	long left = argc > 3 ? atol(argv[1]) : 0;
	int status, meanwhile = 0;
	pid_t child, waiting = 0;

	if (left < 1) {
		fprintf(stderr, "usage: interleave N MEANWHILE COMMAND [ARGUMENT...]\n");
		return 126;
	}
	child = start(argv + 3, true);
	if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
		die("the command did not start");
	if (ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL))
		die("PTRACE_SETOPTIONS");
	while (WIFSTOPPED(status)) {
		if (is_stopped_at_call(child, status) && --left == 0)
			waiting = run_meanwhile(argv[2], &meanwhile);
		status = go_on(child, status);
	}
	if (waiting && waitpid(waiting, &meanwhile, 0) != waiting)
		die("waitpid");
	if (left > 0)
		return NOT_SO_MANY;
	return status_of(status) ? status_of(status) : status_of(meanwhile);
}
