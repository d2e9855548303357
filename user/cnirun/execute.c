/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * execute.c - runs one plugin: its environment, its stdin, its stdout.
 */
#define _GNU_SOURCE
#include "cnirun/execute.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cni/cleanup.h"
#include "cnirun/exchange.h"
#include "cnirun/process_tree.h"

/* As libcni: an installer may be writing the file just now. */
#define BUSY_TRIES 6

extern char **environ;

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

static int start(struct exchange *exchange, const struct execute_environment *environment,
		 struct cni_error *err)
{
	cleanup_close int their_input = -1;
	cleanup_close int their_output = -1;

	if (open_pipe(&exchange->input, &their_input, false, err) ||
	    open_pipe(&exchange->output, &their_output, true, err))
		return -1;
	return spawn(&exchange->pid, exchange->file, environment, their_input, their_output, err);
}

int execute_run(const char *file, const struct execute_environment *environment,
		unsigned int timeout, const char *input, size_t length,
		struct execute_output *output, struct cni_error *err)
{
	struct exchange exchange = {
		.file = file,
		.pid = -1,
		.input = -1,
		.output = -1,
		.unsent = input,
		.unsent_length = length,
		.result = output,
	};
	bool others = process_tree_has_children();
	int failed = start(&exchange, environment, err) || exchange_all(&exchange, timeout, err);

	if (exchange.pid >= 0 && !exchange.ended)
		process_tree_kill(exchange.pid, others);
	exchange_close(&exchange);
	return failed ? -1 : 0;
}

void execute_release(struct execute_output *output)
{
	free(output->text);
	*output = (struct execute_output){0};
}
