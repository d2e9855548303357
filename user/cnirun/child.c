/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * child.c - a plugin's process: its stdin and stdout until it has ended, or its end by force.
 */
#include "cnirun/child.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/io.h"
#include "cnirun/output.h"

#define MS_PER_SECOND 1000
/* For a process that still writes, such as the tee of a shell script that logs. */
#define LEFT_OUTPUT_MS 1000
/* How often to look for the child's end without pidfd_open(), which some containers forbid. */
#define LOOK_MS 20
#define NO_DEADLINE INT64_MAX
/* For descendants to end: 5 seconds altogether. */
#define KILL_ROUNDS 500
#define KILL_PAUSE_US 10000

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * MS_PER_SECOND + now.tv_nsec / 1000000;
}

/* For poll(): -1 is no limit. */
static int ms_left(int64_t deadline)
{
	int64_t left;

	if (deadline == NO_DEADLINE)
		return -1;
	left = deadline - now_ms();
	if (left <= 0)
		return 0;
	return left < INT_MAX ? (int)left : INT_MAX;
}

static void close_end(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* EPIPE is no error, as the plugin need not read all of its stdin. */
static int send_some(struct child *child, struct cni_error *err)
{
	ssize_t sent = write(child->input, child->unsent, strlen(child->unsent));

	if (sent < 0 && errno != EPIPE && errno != EAGAIN && errno != EINTR)
		return cni_error_set(err, CNI_ERROR_IO, "cannot write to %s: %s", child->file,
				     strerror(errno));
	if (sent > 0)
		child->unsent += sent;
	if (!*child->unsent || (sent < 0 && errno == EPIPE))
		close_end(&child->input);
	return 0;
}

static int receive_some(struct child *child, struct cni_error *err)
{
	char chunk[4096];
	ssize_t received = read(child->output, chunk, sizeof(chunk));

	if (received < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (received < 0)
		return cni_error_set(err, CNI_ERROR_IO, "cannot read from %s: %s", child->file,
				     strerror(errno));
	if (!received)
		close_end(&child->output);
	if (fwrite(chunk, 1, (size_t)received, child->received) < (size_t)received)
		return cni_error_no_memory(err);
	if (ftell(child->received) <= (long)CNI_INPUT_LIMIT)
		return 0;
	return cni_error_set(err, CNI_ERROR_IO,
			     "%s wrote more than %zu bytes to stdout, no result is as long: killed",
			     child->file, CNI_INPUT_LIMIT);
}

static int look_for_end(struct child *child, struct cni_error *err)
{
	pid_t found = waitpid(child->pid, &child->status, WNOHANG);

	if (found < 0 && errno != EINTR)
		return cni_error_set(err, CNI_ERROR_IO, "cannot wait for %s: %s", child->file,
				     strerror(errno));
	if (found <= 0)
		return 0;
	child->ended = true;
	close_end(&child->input);
	return 0;
}

/* Both ways at once, as a plugin may write before it has read all, or never read. */
static int take_step(struct child *child, int process, int wait_ms, struct cni_error *err)
{
	struct pollfd ends[] = {
		{.fd = child->input, .events = POLLOUT},
		{.fd = child->output, .events = POLLIN},
		{.fd = child->ended ? -1 : process, .events = POLLIN},
	};

	if (process < 0 && !child->ended && (wait_ms < 0 || wait_ms > LOOK_MS))
		wait_ms = LOOK_MS;
	if (poll(ends, 3, wait_ms) < 0 && errno != EINTR)
		return cni_error_set(err, CNI_ERROR_IO, "cannot wait for %s: %s", child->file,
				     strerror(errno));
	if (ends[0].revents && send_some(child, err))
		return -1;
	if (ends[1].revents && receive_some(child, err))
		return -1;
	return child->ended ? 0 : look_for_end(child, err);
}

int child_wait(struct child *child, unsigned int timeout, struct cni_error *err)
{
	cleanup_close int process = (int)syscall(SYS_pidfd_open, child->pid, 0);
	int64_t deadline = timeout ? now_ms() + (int64_t)timeout * MS_PER_SECOND : NO_DEADLINE;

	while (!child->ended || child->output >= 0) {
		bool ended_before = child->ended;
		int wait_ms = ms_left(deadline);

		if (!wait_ms && child->ended) {
			output_warn("%s has left a process that keeps its stdout open: not waited "
				    "for",
				    child->file);
			return 0;
		}
		if (!wait_ms)
			return cni_error_set(err, CNI_ERROR_IO,
					     "did not end within %u second%s and was killed, with "
					     "the processes that it had started; --timeout SECONDS "
					     "gives it more time",
					     timeout, timeout == 1 ? "" : "s");
		if (take_step(child, process, wait_ms, err))
			return -1;
		if (child->ended && !ended_before)
			deadline = now_ms() + LEFT_OUTPUT_MS;
	}
	return 0;
}

static bool is_child(idtype_t type, pid_t pid)
{
	siginfo_t information;

	return !waitid(type, (id_t)pid, &information, WEXITED | WNOHANG | WNOWAIT);
}

bool child_exists(void)
{
	return is_child(P_ALL, 0);
}

/* waitid() tells which are children of this process; /proc may be that of another PID namespace. */
static void kill_children(void)
{
	DIR *processes = opendir("/proc");
	const struct dirent *entry;

	if (!processes)
		return;
	while ((entry = readdir(processes))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid > 0 && is_child(P_PID, pid))
			kill(pid, SIGKILL);
	}
	closedir(processes);
}

/* Whether the child (-1: every child) has ended. */
static bool reap(pid_t pid)
{
	pid_t reaped;

	do
		reaped = waitpid(pid, NULL, WNOHANG);
	while (reaped > 0 || (reaped < 0 && errno == EINTR));
	return reaped < 0;
}

/* A process group would not do: with one, Ctrl-C of a terminal would no longer reach the plugin,
 * and a descendant could leave it by setsid(). */
void child_kill(pid_t child, bool others)
{
	/* Orphans among the descendants become children of this process, which has no others. */
	if (!others)
		prctl(PR_SET_CHILD_SUBREAPER, 1);
	kill(child, SIGKILL);
	for (int i = 0; i < KILL_ROUNDS && !reap(others ? child : -1); i++) {
		if (!others)
			kill_children();
		usleep(KILL_PAUSE_US);
	}
	if (!others)
		prctl(PR_SET_CHILD_SUBREAPER, 0);
}
