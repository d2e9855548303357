/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * killer.c - runs a command and kills it right before its Nth bpf() system call, or with FILES=1 in
 * the environment its Nth call that changes files.
 *
 * usage: killer [-a] N COMMAND [ARGUMENT...]
 *
 * -a: sendmsg(), rename() and unlink() count, too.
 *
 * Exits with the command's status, or with 137 if the command was killed.
 */
#include "traced.h"

/* arm64 has only the calls that are told a directory. */
static bool counts(long call, bool all)
{
	if (call == __NR_bpf || !all)
		return call == __NR_bpf;
#ifdef __NR_rename
	if (call == __NR_rename || call == __NR_unlink)
		return true;
#else
	if (call == __NR_unlinkat)
		return true;
#endif
	return call == __NR_sendmsg || call == __NR_renameat;
}

int main(int argc, char **argv)
{
	bool all = argc > 1 && !strcmp(argv[1], "-a");
	bool files = getenv("FILES") != NULL;
	long left;
	pid_t child;
	int status;

	argv += all;
	argc -= all;
	left = argc > 2 ? atol(argv[1]) : 0;
	if (left < 1) {
		fprintf(stderr, "usage: killer [-a] N COMMAND [ARGUMENT...]\n");
		return EXIT_TRACER;
	}
	child = traced_start(argv + 2, &status);
	while (WIFSTOPPED(status)) {
		long call = traced_call(child, status);

		if (!(files ? traced_is_of_files(call) : counts(call, all)) || --left > 0) {
			status = traced_continue(child, status);
		} else {
			kill(child, SIGKILL);
			if (waitpid(child, &status, 0) != child)
				tracer_die("waitpid");
		}
	}
	return exit_code_of(status);
}
