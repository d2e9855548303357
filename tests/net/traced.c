/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * traced.c - a command under ptrace that is killed, or stopped, right before its Nth system call
 * that other processes can notice. x86-64 and arm64.
 *
 * usage: traced kill [-a] N COMMAND [ARGUMENT...]
 *        traced stop N MEANWHILE COMMAND [ARGUMENT...]
 *
 * kill: what bpf() changes counts, because a kill before a call that only reads is the same as one
 * before the next call; with -a sendmsg(), rename() and unlink(), too. Exits with 137 if the
 * command was killed. stop: a scheduler that makes races happen. MEANWHILE, a program without
 * arguments, runs until it exits, or until it waits for the lock that the stopped command holds.
 * Exits with MEANWHILE's status if the command succeeded; with 99 if the command made fewer than N
 * such calls and MEANWHILE never ran.
 *
 * With FILES=1 in the environment calls that change files count in place of others. Exits with the
 * command's status otherwise.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
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
#define EXIT_TOO_FEW_CALLS 99

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(errno));
	exit(EXIT_TRACER);
}

static pid_t command_start(char **command, bool traced)
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
}

/* Returns once the command is stopped before its first instruction. */
static pid_t traced_start(char **command, int *status)
{
	pid_t child = command_start(command, true);

	if (waitpid(child, status, 0) != child || !WIFSTOPPED(*status))
		die("the command did not start");
	if (ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL))
		die("PTRACE_SETOPTIONS");
	return child;
}

/* A system call, and its first argument, which says what bpf() does */
struct call {
	long number;
	unsigned long first;
};

/* The call that the command is about to make; its number is -1 if there is none. */
static struct call call_of(pid_t child, int status)
{
	struct __ptrace_syscall_info info = {0};

	if (!WIFSTOPPED(status) || WSTOPSIG(status) != (SIGTRAP | 0x80))
		return (struct call){.number = -1};
	if (ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof(info), &info) < 0)
		die("PTRACE_GET_SYSCALL_INFO");
	if (info.op != PTRACE_SYSCALL_INFO_ENTRY)
		return (struct call){.number = -1};
	return (struct call){(long)info.entry.nr, info.entry.args[0]};
}

/* Continues to the next stop and returns the status there. A signal that has stopped the command
 * is delivered. */
static int continue_command(pid_t child, int status)
{
	int signal = WSTOPSIG(status);

	if (signal == SIGTRAP || signal == (SIGTRAP | 0x80))
		signal = 0;
	if (ptrace(PTRACE_SYSCALL, child, NULL, (long)signal))
		die("PTRACE_SYSCALL");
	if (waitpid(child, &status, 0) != child)
		die("waitpid");
	return status;
}

static int exit_code_of(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool is_of_files(struct call call)
{
#ifdef __NR_unlink
	if (call.number == __NR_unlink)
		return true;
#endif
	return call.number == __NR_renameat || call.number == __NR_renameat2 ||
	       call.number == __NR_linkat || call.number == __NR_unlinkat ||
	       call.number == __NR_fchmod || call.number == __NR_fsync;
}

/* arm64 has only the calls that are told a directory. */
static bool renames_or_unlinks(struct call call)
{
#ifdef __NR_rename
	if (call.number == __NR_rename || call.number == __NR_unlink)
		return true;
#else
	if (call.number == __NR_unlinkat)
		return true;
#endif
	return call.number == __NR_renameat;
}

/* What is made without a name goes with the process: of maps, programs and links their pins count,
 * and of programs and links that they are attached. */
static bool changes(unsigned long command)
{
	return command == BPF_MAP_UPDATE_ELEM || command == BPF_MAP_DELETE_ELEM ||
	       command == BPF_MAP_LOOKUP_AND_DELETE_ELEM || command == BPF_MAP_UPDATE_BATCH ||
	       command == BPF_MAP_DELETE_BATCH || command == BPF_MAP_LOOKUP_AND_DELETE_BATCH ||
	       command == BPF_OBJ_PIN || command == BPF_PROG_ATTACH || command == BPF_PROG_DETACH ||
	       command == BPF_PROG_TEST_RUN || command == BPF_LINK_CREATE ||
	       command == BPF_LINK_UPDATE || command == BPF_LINK_DETACH;
}

static bool kills_at(struct call call, bool all)
{
	return (call.number == __NR_bpf && changes(call.first)) ||
	       (all && (call.number == __NR_sendmsg || renames_or_unlinks(call)));
}

/* Maps and programs, netlink, the lock */
static bool stops_at(struct call call, bool all)
{
	(void)all;
	return call.number == __NR_bpf || call.number == __NR_sendmsg ||
	       call.number == __NR_sendto || call.number == __NR_flock;
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
			die("waitpid");
		if (ended)
			return 0;
		if (waits_for_lock(child))
			return child;
		usleep(1000);
	}
}

/* The command runs up to its call number *left, which counts down. */
static pid_t run_up_to(char **command, long *left, bool all,
		       bool (*counts)(struct call call, bool all), int *status)
{
	pid_t child = traced_start(command, status);

	if (getenv("FILES"))
		counts = NULL;
	while (WIFSTOPPED(*status)) {
		struct call call = call_of(child, *status);

		if ((counts ? counts(call, all) : is_of_files(call)) && --*left == 0)
			break;
		*status = continue_command(child, *status);
	}
	return child;
}

static int command_kill(char **command, long left, bool all)
{
	int status;
	pid_t child = run_up_to(command, &left, all, kills_at, &status);

	if (WIFSTOPPED(status)) {
		kill(child, SIGKILL);
		if (waitpid(child, &status, 0) != child)
			die("waitpid");
	}
	return exit_code_of(status);
}

static int command_stop(char *program, char **command, long left)
{
	int status, meanwhile = 0;
	pid_t child = run_up_to(command, &left, false, stops_at, &status), waiting;

	if (!WIFSTOPPED(status))
		return EXIT_TOO_FEW_CALLS;
	waiting = run_meanwhile(program, &meanwhile);
	while (WIFSTOPPED(status))
		status = continue_command(child, status);
	if (waiting && waitpid(waiting, &meanwhile, 0) != waiting)
		die("waitpid");
	return exit_code_of(status) ? exit_code_of(status) : exit_code_of(meanwhile);
}

int main(int argc, char **argv)
{
	bool stops = argc > 1 && strcmp(argv[1], "stop") == 0, all;

	all = !stops && argc > 2 && strcmp(argv[2], "-a") == 0;
	argv += 2 + all;
	argc -= 2 + all;
	if (argc < 2 + stops || atol(argv[0]) < 1) {
		fprintf(stderr,
			"usage: traced kill [-a] N COMMAND... | stop N MEANWHILE COMMAND...\n");
		return EXIT_TRACER;
	}
	return stops ? command_stop(argv[1], argv + 2, atol(argv[0]))
		     : command_kill(argv + 1, atol(argv[0]), all);
}
