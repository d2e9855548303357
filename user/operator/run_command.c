/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* run_command.c - runs a program of the host, for a limited time. */
#include "operator/run_command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/io.h"
#include "lib/memory.h"
#include "lib/text.h"

#define SEARCH_PATH "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin"
#define OUTPUT_LIMIT ((size_t)64 << 20)
#define CHUNK 65536

/* One stream of the program. */
struct stream {
	int fd;
	char *text;
	size_t length, room;
};

static void cleanup_stream(struct stream *stream)
{
	cleanup_close_pointer(&stream->fd);
	free(stream->text);
}

static int64_t milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A file in memory: the program may read it whenever it likes, and nobody waits for the other. */
static int open_input(const char *text)
{
	int fd =
		text ? memfd_create("input", MFD_CLOEXEC) : open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && text && (cni_write_all(fd, text, strlen(text)) || lseek(fd, 0, SEEK_SET))) {
		close(fd);
		return -1;
	}
	return fd;
}

static int spawn(const struct command_run *run, const int streams[3], pid_t *pid)
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
		posix_spawn_file_actions_adddup2(&actions, streams[i], i);
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

/* False: it has ended. */
static bool read_some(struct stream *stream)
{
	char left_out[4096];
	ssize_t got;

	if (stream->length + CHUNK > stream->room && stream->room < OUTPUT_LIMIT) {
		stream->room = stream->room * 2 + CHUNK;
		stream->text = need(realloc(stream->text, stream->room + 1));
	}
	if (stream->length < stream->room)
		got = read(stream->fd, stream->text + stream->length,
			   stream->room - stream->length);
	else
		got = read(stream->fd, left_out, sizeof(left_out));
	if (got > 0 && stream->length < stream->room)
		stream->length += (size_t)got;
	return got > 0 || (got < 0 && errno == EINTR);
}

/* Reads both until they end. False: the time is over. */
static bool read_streams(struct stream streams[2], int64_t deadline)
{
	struct pollfd polled[2] = {{.fd = streams[0].fd, .events = POLLIN},
				   {.fd = streams[1].fd, .events = POLLIN}};

	while (polled[0].fd >= 0 || polled[1].fd >= 0) {
		int64_t left = deadline - milliseconds();

		if (left <= 0)
			return false;
		if (poll(polled, 2, (int)left) < 0 && errno != EINTR)
			return false;
		for (int i = 0; i < 2; i++)
			if (polled[i].fd >= 0 && polled[i].revents && !read_some(&streams[i]))
				polled[i].fd = -1;
	}
	return true;
}

/* One that waits inside the kernel does not die of a signal at once: it is left to init. */
static void kill_all(pid_t pid, int *status)
{
	const struct timespec pause = {.tv_nsec = 5000000};

	kill(-pid, SIGKILL);
	for (int i = 0; i < 200 && waitpid(pid, status, WNOHANG) == 0; i++)
		nanosleep(&pause, NULL);
}

/* It may close its streams and go on. */
static int wait_for(pid_t pid, int64_t deadline, bool *in_time)
{
	const struct timespec pause = {.tv_nsec = 5000000};
	int status = 0;

	while (*in_time && waitpid(pid, &status, WNOHANG) == 0) {
		*in_time = milliseconds() < deadline;
		nanosleep(&pause, NULL);
	}
	if (!*in_time) {
		kill_all(pid, &status);
		return -1;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void keep_last_line(struct command_run *run, char *text, size_t length)
{
	char *line = text;

	if (!text)
		return;
	while (length && text[length - 1] == '\n')
		length--;
	text[length] = '\0';
	if (strrchr(text, '\n'))
		line = strrchr(text, '\n') + 1;
	snprintf(run->errors, sizeof(run->errors), "%s", line);
	cni_printable(run->errors, "");
}

static void give_output(struct command_run *run, struct stream *output, struct stream *errors)
{
	if (output->text) {
		output->text[output->length] = '\0';
		run->length = output->length;
		run->output = TAKE(output->text);
	}
	keep_last_line(run, errors->text, errors->length);
}

bool command_run(struct command_run *run)
{
	__attribute__((cleanup(cleanup_stream))) struct stream output = {.fd = -1};
	__attribute__((cleanup(cleanup_stream))) struct stream errors = {.fd = -1};
	cleanup_close int input = open_input(run->input);
	int64_t deadline = milliseconds() + (int64_t)run->seconds * 1000;
	struct stream streams[2];
	int out[2], error[2], result;
	bool in_time;
	pid_t pid;

	run->status = -1;
	if (input < 0 || pipe2(out, O_CLOEXEC))
		return false;
	output.fd = out[0];
	if (pipe2(error, O_CLOEXEC)) {
		close(out[1]);
		return false;
	}
	errors.fd = error[0];
	result = spawn(run, (int[]){input, out[1], error[1]}, &pid);
	close(out[1]);
	close(error[1]);
	if (result) {
		run->missing = result == ENOENT;
		snprintf(run->errors, sizeof(run->errors), "%s", strerror(result));
		return false;
	}
	streams[0] = output;
	streams[1] = errors;
	in_time = read_streams(streams, deadline);
	output = streams[0];
	errors = streams[1];
	run->status = wait_for(pid, deadline, &in_time);
	run->timed_out = !in_time;
	give_output(run, &output, &errors);
	if (!in_time)
		snprintf(run->errors, sizeof(run->errors), "it did not end within %d s",
			 run->seconds);
	else if (run->status < 0)
		snprintf(run->errors, sizeof(run->errors), "it was killed");
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
