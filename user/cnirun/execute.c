/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * execute.c - runs one plugin: its environment, its stdin, its stdout.
 */
#define _GNU_SOURCE
#include "cnirun/execute.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cni/cleanup.h"
#include "cni/input.h"

#define OUTPUT_LIMIT CNI_INPUT_LIMIT
#define OUTPUT_STEP 4096
/* As libcni: an installer may be writing the file just now. */
#define BUSY_TRIES 6

extern char **environ;

/* Our ends of the plugin's pipes, and what is still to pass through them. */
struct exchange {
	int input;
	int output;
	const char *unsent;
	size_t unsent_length;
	size_t room; /* of the text of `result` */
	struct execute_output *result;
};

static bool is_regular(const char *path)
{
	struct stat status;

	return !stat(path, &status) && S_ISREG(status.st_mode);
}

char *execute_find(const char *type, const char *path, struct cni_error *err)
{
	const char *directory = path;
	char *file;

	if (strchr(type, '/')) {
		cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			      "invalid plugin type \"%s\": it names a file, without slashes", type);
		return NULL;
	}
	while (*directory) {
		int length = (int)strcspn(directory, ":");

		if (length && asprintf(&file, "%.*s/%s", length, directory, type) < 0) {
			cni_error_no_memory(err);
			return NULL;
		}
		if (length && is_regular(file))
			return file;
		if (length)
			free(file);
		directory += length;
		directory += *directory == ':';
	}
	cni_error_set(
		err, CNI_ERROR_INVALID_CONFIGURATION,
		"failed to find plugin \"%s\" in path [%s]: install it, or name its directory "
		"with --cni-path or CNI_PATH",
		type, path);
	return NULL;
}

static bool is_replaced(const char *variable)
{
	static const char *const names[] = {"CNI_COMMAND=", "CNI_CONTAINERID=", "CNI_NETNS=",
					    "CNI_IFNAME=",  "CNI_ARGS=",        "CNI_PATH="};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strncmp(variable, names[i], strlen(names[i])))
			return true;
	}
	return false;
}

#define VARIABLES 6

static void environment_release(char **variables)
{
	for (size_t i = 0; i < VARIABLES; i++)
		free(variables[i]);
	free(variables);
}

static int environment_set(char **variable, const char *name, const char *value)
{
	if (asprintf(variable, "%s=%s", name, value) >= 0)
		return 0;
	*variable = NULL;
	return -1;
}

/* Ours, then what we inherit; only the first six are to be freed. */
static char **environment_build(const struct execute_environment *environment)
{
	size_t inherited = 0;
	size_t count = VARIABLES;
	char **variables;

	while (environ[inherited])
		inherited++;
	variables = calloc(inherited + VARIABLES + 1, sizeof(*variables));
	if (!variables)
		return NULL;
	if (environment_set(&variables[0], "CNI_COMMAND", environment->command) ||
	    environment_set(&variables[1], "CNI_CONTAINERID", environment->container_id) ||
	    environment_set(&variables[2], "CNI_NETNS", environment->netns) ||
	    environment_set(&variables[3], "CNI_IFNAME", environment->ifname) ||
	    environment_set(&variables[4], "CNI_ARGS", environment->args) ||
	    environment_set(&variables[5], "CNI_PATH", environment->path)) {
		environment_release(variables);
		return NULL;
	}
	for (size_t i = 0; i < inherited; i++) {
		if (!is_replaced(environ[i]))
			variables[count++] = environ[i];
	}
	return variables;
}

/* A plugin should not find SIGPIPE ignored because we ignore it. */
static int spawn_with_default_signals(pid_t *pid, const char *file,
				      const posix_spawn_file_actions_t *actions, char **variables)
{
	char *const arguments[] = {(char *)file, NULL};
	posix_spawnattr_t attributes;
	sigset_t signals;
	int error;

	sigemptyset(&signals);
	sigaddset(&signals, SIGPIPE);
	error = posix_spawnattr_init(&attributes);
	if (error)
		return error;
	posix_spawnattr_setsigdefault(&attributes, &signals);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
	error = posix_spawn(pid, file, actions, &attributes, arguments, variables);
	posix_spawnattr_destroy(&attributes);
	return error;
}

static int spawn_once(pid_t *pid, const char *file, char **variables, int input, int output)
{
	posix_spawn_file_actions_t actions;
	int error = posix_spawn_file_actions_init(&actions);

	if (error)
		return error;
	error = posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
	if (!error)
		error = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
	if (!error)
		error = spawn_with_default_signals(pid, file, &actions, variables);
	posix_spawn_file_actions_destroy(&actions);
	return error;
}

static int spawn(pid_t *pid, const char *file, const struct execute_environment *environment,
		 int input, int output, struct cni_error *err)
{
	char **variables = environment_build(environment);
	int error = ETXTBSY;

	if (!variables)
		return cni_error_no_memory(err);
	for (int i = 0; i < BUSY_TRIES && error == ETXTBSY; i++) {
		if (i)
			sleep(1);
		error = spawn_once(pid, file, variables, input, output);
	}
	environment_release(variables);
	if (!error)
		return 0;
	return cni_error_set(err, CNI_ERROR_IO, "cannot execute %s: %s", file, strerror(error));
}

static void close_end(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* The plugin need not read all of its stdin: EPIPE is no error. */
static int send_some(struct exchange *exchange)
{
	ssize_t sent = write(exchange->input, exchange->unsent, exchange->unsent_length);

	if (sent >= 0) {
		exchange->unsent += sent;
		exchange->unsent_length -= (size_t)sent;
	} else if (errno == EPIPE) {
		exchange->unsent_length = 0;
	} else if (errno != EAGAIN && errno != EINTR) {
		return -1;
	}
	if (!exchange->unsent_length)
		close_end(&exchange->input);
	return 0;
}

static int make_room(struct exchange *exchange)
{
	size_t wanted = exchange->room ? exchange->room * 2 : OUTPUT_STEP;
	char *grown;

	if (exchange->room - exchange->result->length > 1)
		return 0;
	grown = realloc(exchange->result->text, wanted);
	if (!grown)
		return -1;
	exchange->result->text = grown;
	exchange->room = wanted;
	return 0;
}

static int receive_some(struct exchange *exchange, const char *file, struct cni_error *err)
{
	struct execute_output *result = exchange->result;
	ssize_t received;

	if (make_room(exchange))
		return cni_error_no_memory(err);
	received = read(exchange->output, result->text + result->length,
			exchange->room - result->length - 1);
	if (received < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (received < 0)
		return cni_error_set(err, CNI_ERROR_IO, "cannot read from %s: %s", file,
				     strerror(errno));
	if (!received)
		close_end(&exchange->output);
	result->length += (size_t)received;
	result->text[result->length] = '\0';
	if (result->length <= OUTPUT_LIMIT)
		return 0;
	return cni_error_set(err, CNI_ERROR_IO,
			     "%s wrote more than %zu bytes to stdout, no result is as long: killed",
			     file, (size_t)OUTPUT_LIMIT);
}

/* Both ways at once: a plugin may write before it has read all, or never read. */
static int exchange_all(struct exchange *exchange, const char *file, struct cni_error *err)
{
	while (exchange->output >= 0 || exchange->input >= 0) {
		struct pollfd ends[] = {
			{.fd = exchange->input, .events = POLLOUT},
			{.fd = exchange->output, .events = POLLIN},
		};

		if (poll(ends, 2, -1) < 0 && errno != EINTR)
			return cni_error_set(err, CNI_ERROR_IO, "cannot wait for %s: %s", file,
					     strerror(errno));
		if (ends[0].revents && send_some(exchange))
			return cni_error_set(err, CNI_ERROR_IO, "cannot write to %s: %s", file,
					     strerror(errno));
		if (ends[1].revents && receive_some(exchange, file, err))
			return -1;
	}
	return 0;
}

static int wait_for_end(pid_t pid, int *status, const char *file, struct cni_error *err)
{
	while (waitpid(pid, status, 0) < 0) {
		if (errno != EINTR)
			return cni_error_set(err, CNI_ERROR_IO, "cannot wait for %s: %s", file,
					     strerror(errno));
	}
	return 0;
}

/* Both ends close on exec; only ours does not block. */
static int open_pipe(int *ours, int *theirs, bool we_read, struct cni_error *err)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return cni_error_set(err, CNI_ERROR_IO, "cannot make a pipe: %s", strerror(errno));
	*ours = ends[we_read ? 0 : 1];
	*theirs = ends[we_read ? 1 : 0];
	if (fcntl(*ours, F_SETFL, O_NONBLOCK))
		return cni_error_set(err, CNI_ERROR_IO, "cannot set up a pipe: %s",
				     strerror(errno));
	return 0;
}

static int start(struct exchange *exchange, pid_t *pid, const char *file,
		 const struct execute_environment *environment, struct cni_error *err)
{
	cleanup_close int their_input = -1;
	cleanup_close int their_output = -1;

	if (open_pipe(&exchange->input, &their_input, false, err) ||
	    open_pipe(&exchange->output, &their_output, true, err))
		return -1;
	return spawn(pid, file, environment, their_input, their_output, err);
}

int execute_run(const char *file, const struct execute_environment *environment, const char *input,
		size_t length, struct execute_output *output, struct cni_error *err)
{
	struct exchange exchange = {-1, -1, input, length, 0, output};
	struct cni_error ignored = {0};
	pid_t pid = -1;
	int failed = start(&exchange, &pid, file, environment, err);

	if (!failed) {
		failed = exchange_all(&exchange, file, err);
		if (failed)
			kill(pid, SIGKILL);
	}
	close_end(&exchange.input);
	close_end(&exchange.output);
	if (pid >= 0 && wait_for_end(pid, &output->status, file, failed ? &ignored : err))
		failed = -1;
	cni_error_release(&ignored);
	return failed;
}

void execute_release(struct execute_output *output)
{
	free(output->text);
	*output = (struct execute_output){0};
}
