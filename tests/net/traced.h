/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * traced.h - a command under ptrace that stops at each of its system calls. x86-64 and arm64.
 */
#ifndef BPF_PORTMAP_TESTS_TRACED_H
#define BPF_PORTMAP_TESTS_TRACED_H

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

#define EXIT_TRACER 126

static inline _Noreturn void tracer_die(const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(errno));
	exit(EXIT_TRACER);
}

static inline pid_t command_start(char **command, bool traced)
{
	pid_t child = fork();

	if (child < 0)
		tracer_die("fork");
	if (child)
		return child;
	if (traced && ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		tracer_die("ptrace");
	execvp(command[0], command);
	tracer_die(command[0]);
}

/* Returns once the command is stopped before its first instruction. */
static inline pid_t traced_start(char **command, int *status)
{
	pid_t child = command_start(command, true);

	if (waitpid(child, status, 0) != child || !WIFSTOPPED(*status))
		tracer_die("the command did not start");
	if (ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL))
		tracer_die("PTRACE_SETOPTIONS");
	return child;
}

/* The number of the system call that the command is about to make, or -1. */
static inline long traced_call(pid_t child, int status)
{
	struct __ptrace_syscall_info info = {0};

	if (!WIFSTOPPED(status) || WSTOPSIG(status) != (SIGTRAP | 0x80))
		return -1;
	if (ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof(info), &info) < 0)
		tracer_die("PTRACE_GET_SYSCALL_INFO");
	return info.op == PTRACE_SYSCALL_INFO_ENTRY ? (long)info.entry.nr : -1;
}

/* Continues to the next stop and returns the status there. A signal that has stopped the command
 * is delivered. */
static inline int traced_continue(pid_t child, int status)
{
	int signal = WSTOPSIG(status);

	if (signal == SIGTRAP || signal == (SIGTRAP | 0x80))
		signal = 0;
	if (ptrace(PTRACE_SYSCALL, child, NULL, (long)signal))
		tracer_die("PTRACE_SYSCALL");
	if (waitpid(child, &status, 0) != child)
		tracer_die("waitpid");
	return status;
}

static inline int exit_code_of(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* With FILES=1 in the environment the tools stop at these calls in place of others. */
static inline bool traced_is_of_files(long call)
{
#ifdef __NR_unlink
	if (call == __NR_unlink)
		return true;
#endif
	return call == __NR_renameat || call == __NR_renameat2 || call == __NR_linkat ||
	       call == __NR_unlinkat || call == __NR_fchmod || call == __NR_fsync;
}

#endif
