/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * archive.h - the tar that `support` makes: each thing that was looked at, and a manifest of them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define ARCHIVE_DIRECTORY_SIZE 64

struct archive {
	int fd;
	int error;                              /* errno of the first write that failed; 0: none */
	char directory[ARCHIVE_DIRECTORY_SIZE]; /* in which all files are */
	FILE *manifest;
	char *manifest_text;
	size_t manifest_size;
	unsigned int count, failed;
};

/* Begins a tar; its manifest begins with the preface. */
void archive_begin(struct archive *archive, int fd, const char *directory, const char *preface);
/* Adds a file, with a line in the manifest: where it is from, and a remark or NULL. */
void archive_add(struct archive *archive, const char *name, const char *from, const char *text,
		 size_t size);
/* Adds only a line that says why there is no such file. */
void archive_note_failure(struct archive *archive, const char *name, const char *from,
			  const char *why);
/* Runs the program and adds what it prints, or of that only the lines with one of the `words`
 * ("bpf|conntrack"; NULL: all). What ends with a failure is added, too. False: it took too long. */
bool archive_run(struct archive *archive, const char *name, const char *const *arguments,
		 const char *words);
/* Adds the manifest, and ends the tar. False: something could not be written; errno says why. */
bool archive_end(struct archive *archive);
