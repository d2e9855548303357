/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* run_command.c - runs a program of the host, for a limited time. */
#include "operator/run_command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/io.h"
#include "lib/memory.h"
#include "lib/text.h"

#define SEARCH_PATH "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin"
#define OUTPUT_LIMIT ((off_t)64 << 20)
#define LOOK_EVERY 5 /* milliseconds */

/* Standard input, output and error: files in memory, so that nobody waits for anybody. */
struct streams {
	int fds[3];
};

static void cleanup_streams(struct streams *streams)
{
	for (int i = 0; i < 3; i++)
		cleanup_close_pointer(&streams->fds[i]);
}

static bool open_streams(struct streams *streams, const char *input)
{
	for (int i = 0; i < 3; i++)
		streams->fds[i] = memfd_create("stream", MFD_CLOEXEC);
	return streams->fds[0] >= 0 && streams->fds[1] >= 0 && streams->fds[2] >= 0 &&
	       (!input || (!cni_write_all(streams->fds[0], input, strlen(input)) &&
			   !lseek(streams->fds[0], 0, SEEK_SET)));
}

static int spawn(const struct command_run *run, const struct streams *streams, pid_t *pid)
{
	char *environment[] = {"PATH=" SEARCH_PATH, "LC_ALL=C", NULL};
	cleanup_free char *own_path = NULL;
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, defaults;
	int error;

	sigemptyset(&none);
	sigemptyset(&defaults);
	sigaddset(&defaults, SIGPIPE);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
						      POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &defaults);
	posix_spawn_file_actions_init(&actions);
	for (int i = 0; i < 3; i++)
		posix_spawn_file_actions_adddup2(&actions, streams->fds[i], i);
	own_path = cni_format("%s", getenv("PATH") ?: SEARCH_PATH);
	setenv("PATH", SEARCH_PATH, 1); /* which posix_spawnp() goes by */
	signal(SIGCHLD, SIG_DFL);       /* where it is ignored, nobody learns the exit status */
	error = posix_spawnp(pid, run->arguments[0], &actions, &attributes,
			     (char *const *)run->arguments, environment);
	if (own_path)
		setenv("PATH", own_path, 1);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return error;
}

static int64_t milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static off_t size_of(int fd)
{
	struct stat status;

	return fstat(fd, &status) ? 0 : status.st_size;
}

/* Whether it has ended before the deadline; what prints without an end is stopped as well. */
static bool wait_for(pid_t pid, const struct streams *streams, int64_t deadline, int *status)
{
	const struct timespec pause = {.tv_nsec = LOOK_EVERY * 1000000};

	while (waitpid(pid, status, WNOHANG) == 0) {
		if (milliseconds() >= deadline || size_of(streams->fds[1]) > OUTPUT_LIMIT ||
		    size_of(streams->fds[2]) > OUTPUT_LIMIT)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

/* One that waits inside the kernel does not die of a signal at once: it is left to init. */
static void kill_all(pid_t pid)
{
	const struct timespec pause = {.tv_nsec = LOOK_EVERY * 1000000};
	int status;

	kill(-pid, SIGKILL);
	for (int i = 0; i < 200 && waitpid(pid, &status, WNOHANG) == 0; i++)
		nanosleep(&pause, NULL);
}

static char *read_stream(int fd, size_t *length)
{
	cleanup_error struct cni_error ignored = {0};

	lseek(fd, 0, SEEK_SET);
	return cni_read_all(fd, 2 * (size_t)OUTPUT_LIMIT, "", length, &ignored);
}

static void keep_last_line(struct command_run *run, char *text)
{
	char *end = text + strlen(text), *line;

	while (end > text && end[-1] == '\n')
		*--end = '\0';
	line = strrchr(text, '\n');
	snprintf(run->errors, sizeof(run->errors), "%s", line ? line + 1 : text);
	cni_printable(run->errors, "");
}

static void take_streams(struct command_run *run, const struct streams *streams)
{
	size_t length;
	cleanup_free char *errors = read_stream(streams->fds[2], &length);

	run->output = read_stream(streams->fds[1], &run->length);
	if (errors)
		keep_last_line(run, errors);
	if (run->timed_out)
		snprintf(run->errors, sizeof(run->errors), "it did not end within %d s",
			 run->seconds);
	else if (run->status < 0)
		snprintf(run->errors, sizeof(run->errors), "it was killed");
}

bool command_run(struct command_run *run)
{
	__attribute__((cleanup(cleanup_streams))) struct streams streams = {{-1, -1, -1}};
	int64_t deadline = milliseconds() + (int64_t)run->seconds * 1000;
	int status = 0, error;
	pid_t pid;

	run->status = -1;
	if (!open_streams(&streams, run->input))
		return false;
	error = spawn(run, &streams, &pid);
	if (error) {
		run->missing = error == ENOENT;
		snprintf(run->errors, sizeof(run->errors), "%s", strerror(error));
		return false;
	}
	run->timed_out = !wait_for(pid, &streams, deadline, &status);
	if (run->timed_out)
		kill_all(pid);
	else if (WIFEXITED(status))
		run->status = WEXITSTATUS(status);
	take_streams(run, &streams);
	return run->status == 0;
}

void command_run_release(struct command_run *run)
{
	free(run->output);
	run->output = NULL;
}

const char *command_run_why(const struct command_run *run, char why[COMMAND_FAILURE_SIZE])
{
	snprintf(why, COMMAND_FAILURE_SIZE, "%.60s fails%s%s", run->arguments[0],
		 *run->errors ? ": " : "", run->errors);
	return why;
}
