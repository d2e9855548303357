/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * execute.c - runs a plugin once: its environment, its stdin, its stdout.
 */
#include "cnirun/execute.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/text.h"
#include "cnirun/child.h"

/* As many as libcni: an installer may be writing the file. */
#define BUSY_TRIES 6

static bool is_regular(const char *path)
{
	struct stat status;

	return !stat(path, &status) && S_ISREG(status.st_mode);
}

char *execute_find(const char *type, const char *path, struct cni_error *err)
{
	const char *directory = path;

	if (strchr(type, '/')) {
		cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			      "invalid plugin type \"%s\": it names a file, without slashes", type);
		return NULL;
	}
	while (*directory) {
		int length = (int)strcspn(directory, ":");
		cleanup_free char *file = cni_format("%.*s/%s", length, directory, type);

		if (!file) {
			cni_error_no_memory(err);
			return NULL;
		}
		if (length && is_regular(file))
			return TAKE(file);
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

static const char *const names[] = {"CNI_COMMAND", "CNI_CONTAINERID", "CNI_NETNS",
				    "CNI_IFNAME",  "CNI_ARGS",        "CNI_PATH"};

#define VARIABLES (sizeof(names) / sizeof(names[0]))

static bool is_ours(const char *variable)
{
	size_t length = strcspn(variable, "=");

	for (size_t i = 0; i < VARIABLES; i++) {
		if (strlen(names[i]) == length && !strncmp(variable, names[i], length))
			return true;
	}
	return false;
}

/* Only the first VARIABLES strings are the array's own. */
static void release_environment(char ***environment)
{
	for (size_t i = 0; *environment && i < VARIABLES; i++)
		free((*environment)[i]);
	free(*environment);
}

/* The variables of CNI, then those that this process has. NULL without memory. */
static char **build_environment(const struct execution *execution)
{
	const struct runtime_conf *conf = execution->conf;
	cleanup_free char *args = args_format(conf->args);
	const char *const values[VARIABLES] = {
		execution->command, conf->container_id, conf->netns, conf->ifname, args,
		conf->plugin_path,
	};
	__attribute__((cleanup(release_environment))) char **environment = NULL;
	size_t inherited = 0;
	size_t count = 0;

	if (!args)
		return NULL;
	while (environ[inherited])
		inherited++;
	environment = calloc(VARIABLES + inherited + 1, sizeof(*environment));
	for (; environment && count < VARIABLES; count++) {
		environment[count] = cni_format("%s=%s", names[count], values[count]);
		if (!environment[count])
			return NULL;
	}
	for (size_t i = 0; environment && i < inherited; i++) {
		if (!is_ours(environ[i]))
			environment[count++] = environ[i];
	}
	return TAKE(environment);
}

/* Returns an errno. */
static int spawn_once(struct child *child, int input, int output, char **environment)
{
	char *const arguments[] = {(char *)child->file, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t signals;
	int error = posix_spawn_file_actions_init(&actions);

	if (error)
		return error;
	error = posix_spawnattr_init(&attributes);
	if (error) {
		posix_spawn_file_actions_destroy(&actions);
		return error;
	}
	/* The plugin should not inherit that SIGPIPE is ignored. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGPIPE);
	posix_spawnattr_setsigdefault(&attributes, &signals);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
	error = posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
	if (!error)
		error = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
	if (!error)
		error = posix_spawn(&child->pid, child->file, &actions, &attributes, arguments,
				    environment);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return error;
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

static int start(struct child *child, const struct execution *execution, struct cni_error *err)
{
	__attribute__((cleanup(release_environment))) char **environment =
		build_environment(execution);
	cleanup_close int their_input = -1;
	cleanup_close int their_output = -1;
	int error = ETXTBSY;

	if (!environment)
		return cni_error_no_memory(err);
	if (open_pipe(&child->input, &their_input, false, err) ||
	    open_pipe(&child->output, &their_output, true, err))
		return -1;
	for (int i = 0; i < BUSY_TRIES && error == ETXTBSY; i++) {
		if (i)
			sleep(1);
		error = spawn_once(child, their_input, their_output, environment);
	}
	if (!error)
		return 0;
	return cni_error_set(err, CNI_ERROR_IO, "cannot execute %s: %s", child->file,
			     strerror(error));
}

int execute_run(const char *file, const struct execution *execution, struct execute_output *output,
		struct cni_error *err)
{
	struct child child = {
		.file = file,
		.pid = -1,
		.input = -1,
		.output = -1,
		.unsent = execution->input,
		.received = open_memstream(&output->text, &output->length),
	};
	bool others = child_exists();
	int failed;

	if (!child.received)
		return cni_error_no_memory(err);
	failed = start(&child, execution, err) || child_wait(&child, execution->conf->timeout, err);
	if (child.pid >= 0 && !child.ended)
		child_kill(child.pid, others);
	if (child.input >= 0)
		close(child.input);
	if (child.output >= 0)
		close(child.output);
	if (fclose(child.received) && !failed)
		failed = cni_error_no_memory(err);
	output->status = child.status;
	return failed ? -1 : 0;
}

void execute_release(struct execute_output *output)
{
	free(output->text);
	*output = (struct execute_output){0};
}
