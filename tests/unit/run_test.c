/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* run_test.c - programs of the host that we run: what they get, and what is kept of them. */
#include "cni_testing.h"

#include <unistd.h>

#include "lib/run.h"

TEST(output_and_status, "what it prints, the last line of its errors, its exit status")
{
	const char *const arguments[] = {"sh", "-c",
					 "echo one; echo two >&2; echo three >&2; exit 3", NULL};
	cleanup_command struct command_run run = {.arguments = arguments, .seconds = 60};

	assert_false(command_run(&run));
	assert_int_equal(run.status, 3);
	assert_string_equal(run.output, "one\n");
	assert_string_equal(run.errors, "three");
	assert_false(run.missing || run.timed_out);
}

TEST(missing, "a program that is missing")
{
	const char *const arguments[] = {"bpf-portmap-no-such-program", NULL};
	cleanup_command struct command_run run = {.arguments = arguments, .seconds = 60};

	assert_false(command_run(&run));
	assert_true(run.missing);
	assert_non_null(strstr(run.errors, "bpf-portmap-no-such-program"));
}

TEST(time_limit, "one that does not end is killed")
{
	const char *const arguments[] = {"sleep", "3600", NULL};
	cleanup_command struct command_run run = {.arguments = arguments, .seconds = 1};

	assert_false(command_run(&run));
	assert_true(run.timed_out);
	assert_int_equal(run.status, -1);
	assert_string_equal(run.errors, "it did not end within 1 s");
}

TEST(inherits_nothing, "it inherits neither files nor variables of ours")
{
	const char *const arguments[] = {"sh", "-c", "[ -e /proc/self/fd/77 ] || env", NULL};
	cleanup_command struct command_run run = {.arguments = arguments, .seconds = 60};

	assert_int_equal(dup2(STDIN_FILENO, 77), 77);
	assert_int_equal(setenv("CNI_COMMAND", "DEL", 1), 0);
	assert_true(command_run(&run));
	assert_int_equal(close(77), 0);
	assert_non_null(strstr(run.output, "LC_ALL=C\n"));
	assert_null(strstr(run.output, "CNI_COMMAND"));
}

TEST(discards, "what may go on printing prints nowhere")
{
	const char *const arguments[] = {"sh", "-c", "[ /dev/fd/1 -ef /dev/null ] && echo one",
					 NULL};
	cleanup_command struct command_run run = {
		.arguments = arguments, .seconds = 60, .discards = true};

	assert_true(command_run(&run));
	assert_int_equal(run.length, 0);
}
