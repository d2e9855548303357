/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * killer.c - runs a command and kills it right before its Nth bpf() system call, or with FILES=1 in
 * the environment its Nth call that changes files.
 *
 * usage: killer N COMMAND [ARGUMENT...]
 *
 * Exits with the command's status, or with 137 if the command was killed.
 */
#include "traced.h"

int main(int argc, char **argv)
{
	long left = argc > 2 ? atol(argv[1]) : 0;
	bool files = getenv("FILES") != NULL;
	pid_t child;
	int status;

	if (left < 1) {
		fprintf(stderr, "usage: killer N COMMAND [ARGUMENT...]\n");
		return EXIT_TRACER;
	}
	child = traced_start(argv + 2, &status);
	while (WIFSTOPPED(status)) {
		long call = traced_call(child, status);

		if (!(files ? traced_is_of_files(call) : call == __NR_bpf) || --left > 0) {
			status = traced_continue(child, status);
		} else {
			kill(child, SIGKILL);
			if (waitpid(child, &status, 0) != child)
				tracer_die("waitpid");
		}
	}
	return exit_code_of(status);
}
