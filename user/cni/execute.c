/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * execute.c - runs a CNI plugin once: its environment, its stdin and stdout until it has ended, or
 * its end by force.
 */
#include "cni/execute.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/clock.h"
#include "lib/io.h"
#include "lib/memory.h"
#include "lib/text.h"
#include "lib/json.h"

/* As many as libcni: an installer may be writing the file. */
#define BUSY_TRIES 6
/* For a process that still writes, such as the tee of a shell script that logs. */
#define LEFT_OUTPUT_MS 1000
/* How often to look for the child's end without pidfd_open(), which some containers forbid. */
#define LOOK_MS 20
#define NO_DEADLINE INT64_MAX
/* For descendants to end: 5 seconds altogether. */
#define KILL_ROUNDS 500
#define KILL_PAUSE_US 10000
#define QUOTED_OUTPUT 200

struct child {
	const char *file; /* for messages */
	pid_t pid;
	int output;     /* our end of its stdout; -1: closed */
	FILE *received; /* of it */
	bool ended;     /* and waited for */
	int status;     /* as of waitpid() */
};

char *execute_find(const char *type, const char *path, struct cni_error *err)
{
	const char *directory = path;
	struct stat status;

	if (strchr(type, '/'))
		return cni_error_null(
			err, CNI_ERROR_INVALID_CONFIGURATION,
			"invalid plugin type \"%s\": it names a file, without slashes", type);
	while (*directory) {
		int length = (int)strcspn(directory, ":");
		cleanup_free char *file = cni_format("%.*s/%s", length, directory, type);

		if (length && !stat(file, &status) && S_ISREG(status.st_mode))
			return TAKE(file);
		directory += length;
		directory += *directory == ':';
	}
	return cni_error_null(
		err, CNI_ERROR_INVALID_CONFIGURATION,
		"failed to find plugin \"%s\" in path [%s]: install it, or name its directory "
		"with --cni-path or CNI_PATH",
		type, path);
}

static bool is_of_execution(const struct execution *execution, const char *entry)
{
	size_t length = strcspn(entry, "=");
	const char *name;

	for (size_t i = 0; (name = execution->variables[i][0]); i++)
		if (!strncmp(name, entry, length) && !name[length])
			return true;
	return false;
}

/* Makes the plugin's environment: the execution's variables, from `*own` on, and what else is in
 * ours. */
static char **make_environment(const struct execution *execution, size_t *own)
{
	char **list = NULL;
	size_t count = 0;

	for (char **entry = environ; *entry; entry++)
		if (!is_of_execution(execution, *entry))
			*ARRAY_ADD(list, count) = *entry;
	*own = count;
	for (size_t i = 0; execution->variables[i][0]; i++)
		*ARRAY_ADD(list, count) =
			cni_format("%s=%s", execution->variables[i][0], execution->variables[i][1]);
	*ARRAY_ADD(list, count) = NULL;
	return list;
}

/* The whole text is there before the plugin starts, which need not read it. */
static int open_input(const char *text, struct cni_error *err)
{
	int fd = memfd_create("stdin", MFD_CLOEXEC);

	if (fd >= 0 && !cni_write_all(fd, text, strlen(text)) && !lseek(fd, 0, SEEK_SET))
		return fd;
	cni_error_set(err, CNI_ERROR_IO, "cannot make a file in memory: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Returns an errno. */
static int spawn_once(struct child *child, int input, int output, char *const *environment)
{
	char *const arguments[] = {(char *)child->file, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t signals;
	int error;

	/* In glibc none of the preparations fails. */
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
	/* The plugin should not inherit that SIGPIPE is ignored. */
	posix_spawnattr_init(&attributes);
	sigemptyset(&signals);
	sigaddset(&signals, SIGPIPE);
	posix_spawnattr_setsigdefault(&attributes, &signals);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
	error = posix_spawn(&child->pid, child->file, &actions, &attributes, arguments,
			    environment);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return error;
}

static int start_child(struct child *child, const struct execution *execution,
		       struct cni_error *err)
{
	cleanup_close int input = open_input(execution->input, err);
	cleanup_free char **environment = NULL;
	cleanup_close int their_output = -1;
	int error = ETXTBSY, ends[2];
	size_t own;

	if (input < 0)
		return -1;
	if (pipe2(ends, O_CLOEXEC))
		return cni_error_set(err, CNI_ERROR_IO, "cannot make a pipe: %s", strerror(errno));
	child->output = ends[0];
	their_output = ends[1];
	environment = make_environment(execution, &own);
	for (int i = 0; i < BUSY_TRIES && error == ETXTBSY; i++) {
		if (i)
			sleep(1);
		error = spawn_once(child, input, their_output, environment);
	}
	for (; environment[own]; own++)
		free(environment[own]);
	if (!error)
		return 0;
	return cni_error_set(err, CNI_ERROR_IO, "cannot execute %s: %s", child->file,
			     strerror(error));
}

static int receive_some(struct child *child, struct cni_error *err)
{
	char chunk[4096];
	ssize_t received = read(child->output, chunk, sizeof(chunk));

	if (received < 0 && errno == EINTR)
		return 0;
	if (received < 0)
		return cni_error_set(err, CNI_ERROR_IO, "cannot read from %s: %s", child->file,
				     strerror(errno));
	if (!received)
		cleanup_close_pointer(&child->output);
	or_exit(fwrite(chunk, 1, (size_t)received, child->received) < (size_t)received ? NULL
										       : child);
	if (ftell(child->received) <= (long)CNI_INPUT_LIMIT)
		return 0;
	return cni_error_set(
		err, CNI_ERROR_IO,
		"%s wrote more than %zu bytes to stdout, more than any result has, and was killed",
		child->file, CNI_INPUT_LIMIT);
}

static int take_step(struct child *child, int process, int wait_ms, struct cni_error *err)
{
	struct pollfd ends[] = {
		{.fd = child->output, .events = POLLIN},
		{.fd = child->ended ? -1 : process, .events = POLLIN},
	};
	pid_t found;

	if (process < 0 && !child->ended && wait_ms > LOOK_MS)
		wait_ms = LOOK_MS;
	if (poll(ends, 2, wait_ms) < 0 && errno != EINTR)
		return cni_error_set(err, CNI_ERROR_IO, "cannot wait for %s: %s", child->file,
				     strerror(errno));
	if (ends[0].revents && receive_some(child, err))
		return -1;
	if (child->ended)
		return 0;
	found = waitpid(child->pid, &child->status, WNOHANG);
	if (found < 0 && errno != EINTR)
		return cni_error_set(err, CNI_ERROR_IO, "cannot wait for %s: %s", child->file,
				     strerror(errno));
	child->ended = found > 0;
	return 0;
}

static int refuse_slow(const struct execution *execution, struct cni_error *err)
{
	const char *longer = execution->longer;

	return cni_error_set(err, CNI_ERROR_IO,
			     "did not end within %u second%s and was killed, with the processes "
			     "that it had started%s%s%s",
			     execution->timeout, execution->timeout == 1 ? "" : "s",
			     longer ? "; " : "", longer ? longer : "",
			     longer ? " gives it more time" : "");
}

/* Waits until the child has ended and its stdout is at the end. CNI_ERROR_IO, after which it may
 * still run: it did not end in time, or wrote more than a result can be. If a process that it left
 * behind keeps its stdout open, waits only a moment for that. */
static int wait_for_end(struct child *child, const struct execution *execution,
			struct cni_error *err)
{
	cleanup_close int process = (int)syscall(SYS_pidfd_open, child->pid, 0);
	int64_t deadline = execution->timeout
				   ? clock_ms() + (int64_t)execution->timeout * MS_PER_SECOND
				   : NO_DEADLINE;

	while (!child->ended || child->output >= 0) {
		bool ended_before = child->ended;
		int64_t left = deadline - clock_ms();

		if (left <= 0)
			return child->ended ? 0 : refuse_slow(execution, err);
		if (take_step(child, process, left < INT_MAX ? (int)left : INT_MAX, err))
			return -1;
		if (child->ended && !ended_before)
			deadline = clock_ms() + LEFT_OUTPUT_MS;
	}
	return 0;
}

static bool is_child(idtype_t type, pid_t pid)
{
	siginfo_t information;

	return !waitid(type, (id_t)pid, &information, WEXITED | WNOHANG | WNOWAIT);
}

/* waitid() tells which are children of this process; /proc may be that of another PID namespace. */
static void kill_children(void)
{
	cleanup_listing DIR *processes = opendir("/proc");
	const struct dirent *entry;

	while (processes && (entry = readdir(processes))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid > 0 && is_child(P_PID, pid))
			kill(pid, SIGKILL);
	}
}

/* Kills the child and all that descends from it, and waits for their end, for some seconds at most.
 * A daemon, whose parent has ended before, stays. `others`: this process has more children, from
 * which the child's descendants cannot be told; then only the child is killed.
 *
 * A process group would not do: with one, Ctrl-C of a terminal would no longer reach the plugin,
 * and a descendant could leave it by setsid(). */
static void kill_child(pid_t child, bool others)
{
	/* Orphans among the descendants become children of this process, which has no others. */
	if (!others)
		prctl(PR_SET_CHILD_SUBREAPER, 1);
	kill(child, SIGKILL);
	for (int i = 0; i < KILL_ROUNDS; i++) {
		pid_t reaped;

		do
			reaped = waitpid(others ? child : -1, NULL, WNOHANG);
		while (reaped > 0 || (reaped < 0 && errno == EINTR));
		if (reaped < 0)
			break;
		if (!others)
			kill_children();
		usleep(KILL_PAUSE_US);
	}
	if (!others)
		prctl(PR_SET_CHILD_SUBREAPER, 0);
}

int execute_run(const char *file, const struct execution *execution, struct execute_output *output,
		struct cni_error *err)
{
	struct child child = {
		.file = file,
		.pid = -1,
		.output = -1,
		.received = or_exit(open_memstream(&output->text, &output->length)),
	};
	/* A process that called exec() may have children that it does not know. */
	bool others = is_child(P_ALL, 0);
	int failed = start_child(&child, execution, err) || wait_for_end(&child, execution, err);

	if (child.pid >= 0 && !child.ended)
		kill_child(child.pid, others);
	output->is_held_open = child.output >= 0;
	cleanup_close_pointer(&child.output);
	or_exit(fclose(child.received) ? NULL : output->text);
	output->status = child.status;
	return failed ? -1 : 0;
}

int execute_check(const struct execute_output *output, struct cni_error *err)
{
	cleanup_json json_t *root = NULL;
	const char *message, *details;

	if (!output->status)
		return 0;
	if (!output->length && WIFSIGNALED(output->status))
		return cni_error_set(err, CNI_ERROR_IO,
				     "killed by signal %d (%s) with no error message",
				     WTERMSIG(output->status), strsignal(WTERMSIG(output->status)));
	if (!output->length)
		return cni_error_set(err, CNI_ERROR_IO,
				     "exit status %d with no error message on stdout (stderr, "
				     "above, may tell why)",
				     WEXITSTATUS(output->status));
	root = cni_json_parse_object(output->text, output->length, "stdout", NULL);
	message = json_string_value(cni_json_get(root, "msg"));
	details = json_string_value(cni_json_get(root, "details"));
	if (!message || !*message)
		return cni_error_set(err, CNI_ERROR_DECODE,
				     "its error on stdout is no CNI error: \"%.*s\"", QUOTED_OUTPUT,
				     output->text);
	cni_error_set(err, (int)json_integer_value(cni_json_get(root, "code")), "%s", message);
	return details && *details ? cni_error_set_details(err, "%s", details) : -1;
}

void execute_release(struct execute_output *output)
{
	free(output->text);
	*output = (struct execute_output){0};
}
