/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cnirun_testing.h - a folder for each test: lists, a cache, plugins that are scripts.
 */
#pragma once

#include "cni_testing.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATH_SIZE 512
#define FILE_SIZE 65536

/* Of the test that runs now. */
static char sandbox[PATH_SIZE];

static inline const char *sandbox_path(const char *name)
{
	static char paths[4][PATH_SIZE * 2];
	static unsigned int next;
	char *path = paths[next++ % COUNT(paths)];

	snprintf(path, sizeof(paths[0]), "%s/%s", sandbox, name);
	return path;
}

static inline void sandbox_make_directory(const char *name)
{
	assert_int_equal(mkdir(sandbox_path(name), 0700), 0);
}

static inline void sandbox_write(const char *name, const char *text)
{
	FILE *file = fopen(sandbox_path(name), "we");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static inline bool sandbox_has(const char *name)
{
	return !access(sandbox_path(name), F_OK);
}

/* "" where it does not exist. Valid until the next call. */
static inline const char *sandbox_read(const char *name)
{
	static char text[FILE_SIZE];
	FILE *file = fopen(sandbox_path(name), "re");
	size_t length = 0;

	if (file) {
		length = fread(text, 1, sizeof(text) - 1, file);
		fclose(file);
	}
	text[length] = '\0';
	return text;
}

static inline int sandbox_setup(void **state)
{
	snprintf(sandbox, sizeof(sandbox), "/tmp/cnirun-test-XXXXXX");
	return mkdtemp(sandbox) ? 0 : -1;
}

static inline int sandbox_remove_one(const char *path, const struct stat *status, int type,
				     struct FTW *walk)
{
	(void)status;
	(void)type;
	(void)walk;
	return remove(path);
}

static inline int sandbox_teardown(void **state)
{
	return nftw(sandbox, sandbox_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}
