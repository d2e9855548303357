/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * killer.c - runs a command and kills it right before its Nth bpf() system call.
 *
 * usage: killer N COMMAND [ARGUMENT...]
 *
 * Exits with the command's status, or with 137 if it was killed. x86-64 and arm64.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void die(const char *what)
{
	fprintf(stderr, "killer: %s: %s\n", what, strerror(errno));
	exit(126);
}

static pid_t start(char **command)
{
	pid_t child = fork();

	if (child < 0)
		die("fork");
	if (child)
		return child;
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		die("ptrace");
	execvp(command[0], command);
	die(command[0]);
	return -1;
}

static bool begins_bpf(pid_t child)
{
	struct __ptrace_syscall_info info = {0};

	if (ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof(info), &info) < 0)
		die("PTRACE_GET_SYSCALL_INFO");
	return info.op == PTRACE_SYSCALL_INFO_ENTRY && info.entry.nr == __NR_bpf;
}

/* What a stop hands on to the command when it goes on. */
static int signal_of(int status)
{
	int signal = WSTOPSIG(status);

	return signal == SIGTRAP || signal == (SIGTRAP | 0x80) ? 0 : signal;
}

int main(int argc, char **argv)
{
	long left = argc > 2 ? atol(argv[1]) : 0;
	pid_t child;
	int status;

	if (left < 1) {
		fprintf(stderr, "usage: killer N COMMAND [ARGUMENT...]\n");
		return 126;
	}
	child = start(argv + 2);
	if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
		die("the command did not start");
	if (ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL))
		die("PTRACE_SETOPTIONS");
	while (WIFSTOPPED(status)) {
		bool is_syscall = WSTOPSIG(status) == (SIGTRAP | 0x80);

		if (is_syscall && begins_bpf(child) && --left == 0)
			kill(child, SIGKILL);
		else if (ptrace(PTRACE_SYSCALL, child, NULL, (long)signal_of(status)))
			die("PTRACE_SYSCALL");
		if (waitpid(child, &status, 0) != child)
			die("waitpid");
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
