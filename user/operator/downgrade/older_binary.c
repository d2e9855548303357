/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* older_binary.c - another version of bpf-portmap. */
#include "operator/downgrade/older_binary.h"

#include <errno.h>
#include <jansson.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "abi.h"
#include "lib/cleanup.h"
#include "lib/version.h"
#include "operator/run_command.h"

#define SECONDS 60

static bool is_roots_alone(const char *path, mode_t type)
{
	struct stat status;

	return !stat(path, &status) && (status.st_mode & S_IFMT) == type && !status.st_uid &&
	       (!(status.st_mode & (S_IWGRP | S_IWOTH)) ||
		(type == S_IFDIR && status.st_mode & S_ISVTX));
}

/* Whoever can rename a directory on the way can put another file there. In one like /tmp nobody
 * can rename what is root's. */
static bool way_is_roots_alone(const char *path)
{
	char copy[PATH_MAX], *folder = copy;

	snprintf(copy, sizeof(copy), "%s", path);
	do {
		folder = dirname(folder);
		if (!is_roots_alone(folder, S_IFDIR))
			return false;
	} while (strcmp(folder, "/") != 0);
	return true;
}

static int check_file(struct older_binary *binary, const char *path, struct cni_error *err)
{
	if (!realpath(path, binary->path))
		return cni_error_set(err, CNI_ERROR_IO, "cannot find %s: %s", path,
				     strerror(errno));
	if (is_roots_alone(binary->path, S_IFREG) && way_is_roots_alone(binary->path))
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "%s is not run: it must be a file of root's that nobody else can"
			     " write to, and so must all directories on the way to it",
			     binary->path);
}

/* Every version says "bpf-portmap VERSION: a chained CNI plugin" there; the first ones on standard
 * error, and they have no --version. */
static int read_version(struct older_binary *binary, struct cni_error *err)
{
	const char *const arguments[] = {binary->path, "--help", NULL};
	cleanup_command struct command_run run = {
		.arguments = arguments, .seconds = SECONDS, .with_errors = true};

	if (command_run(&run) && run.output &&
	    sscanf(run.output, "bpf-portmap %31[0-9A-Za-z.~+-]:", binary->version) == 1)
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "%s is no bpf-portmap: its --help does not say so", binary->path);
}

static bool answers_version(const struct older_binary *binary)
{
	const char *const arguments[] = {"env", "CNI_COMMAND=VERSION", binary->path, NULL};
	cleanup_command struct command_run run = {
		.arguments = arguments, .input = "{\"cniVersion\": \"1.0.0\"}", .seconds = SECONDS};
	cleanup_json json_t *said = NULL;

	if (!command_run(&run) || !run.output)
		return false;
	said = json_loads(run.output, 0, NULL);
	return json_array_size(json_object_get(said, "supportedVersions")) > 0;
}

/* A version that does not know the verb, or our maps, fails. */
static bool can_replace_ours(const struct older_binary *binary)
{
	const char *const arguments[] = {binary->path, "upgrade", "--dry-run", "--json", NULL};
	cleanup_command struct command_run run = {.arguments = arguments, .seconds = SECONDS};
	cleanup_json json_t *said = NULL;
	const json_t *layout;

	if (!command_run(&run) || !run.output)
		return false;
	said = json_loads(run.output, 0, NULL);
	layout = json_object_get(json_object_get(said, "summary"), "to_layout");
	return json_integer_value(layout) == LAYOUT;
}

int older_binary_examine(struct older_binary *binary, const char *path, struct cni_error *err)
{
	if (check_file(binary, path, err) || read_version(binary, err))
		return -1;
	if (!answers_version(binary))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "%s does not answer CNI's VERSION: it is no plugin that can be"
				     " used here",
				     binary->path);
	if (!version_is_older(binary->version, PROGRAM_VERSION))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "%s is of version %s, which is not older than " PROGRAM_VERSION
				     ": `%s upgrade` puts it in the place of this one",
				     binary->path, binary->version, binary->path);
	binary->has_our_layout = can_replace_ours(binary);
	return 0;
}
