/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* run.c - runs a program of the host, for a limited time. */
#include "lib/run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
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
#include "lib/clock.h"
#include "lib/io.h"
#include "lib/text.h"

#define SEARCH_PATH "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin"
#define OUTPUT_LIMIT ((off_t)64 << 20)
#define LOOK_EVERY 5     /* milliseconds */
#define EXIT_NOT_RUN 127 /* as shells say it */

/* Standard input, output and error: files in memory, so that nobody waits for anybody, or
 * /dev/null, where a process that is left behind may write for ever. */
struct streams {
	int fds[3];
};

static void cleanup_streams(struct streams *streams)
{
	for (int i = 0; i < 3; i++)
		cleanup_close_pointer(&streams->fds[i]);
}

static bool open_streams(struct streams *streams, bool discards)
{
	for (int i = 0; i < 3; i++)
		streams->fds[i] = discards ? open("/dev/null", O_RDWR | O_CLOEXEC)
					   : memfd_create("stream", MFD_CLOEXEC);
	return streams->fds[0] >= 0 && streams->fds[1] >= 0 && streams->fds[2] >= 0;
}

/* -1 and errno. */
static pid_t start(const struct command_run *run, const struct streams *streams)
{
	char *environment[] = {"PATH=" SEARCH_PATH, "LC_ALL=C", NULL};
	pid_t pid = fork();
	sigset_t none;

	if (pid)
		return pid;
	setpgid(0, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	for (int i = 0; i < 3; i++)
		dup2(streams->fds[i], i);
	/* Our locks least of all are for what the program may leave running. */
	closefrom(STDERR_FILENO + 1);
	environ = environment; /* by whose PATH the program is looked for, too */
	execvp(run->arguments[0], (char *const *)run->arguments);
	perror(run->arguments[0]);
	_exit(EXIT_NOT_RUN);
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
		if (clock_ms() >= deadline || size_of(streams->fds[1]) > OUTPUT_LIMIT ||
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
	int64_t deadline = clock_ms() + (int64_t)run->seconds * MS_PER_SECOND;
	int status = 0;
	pid_t pid;

	run->status = -1;
	if (!open_streams(&streams, run->discards))
		return false;
	pid = start(run, &streams);
	if (pid < 0) {
		snprintf(run->errors, sizeof(run->errors), "%s", strerror(errno));
		return false;
	}
	run->timed_out = !wait_for(pid, &streams, deadline, &status);
	if (run->timed_out)
		kill_all(pid);
	else if (WIFEXITED(status))
		run->status = WEXITSTATUS(status);
	run->missing = run->status == EXIT_NOT_RUN;
	take_streams(run, &streams);
	return run->status == 0;
}

void command_run_release(struct command_run *run)
{
	free(run->output);
	run->output = NULL;
}
