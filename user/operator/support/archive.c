/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* archive.c - the tar that `support` makes, and its manifest. */
#include "operator/support/archive.h"

#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "lib/memory.h"
#include "lib/text.h"
#include "operator/run_command.h"
#include "operator/support/tar.h"

#define SECONDS 10

void archive_begin(struct archive *archive, int fd, const char *directory)
{
	*archive = (struct archive){.fd = fd};
	snprintf(archive->directory, sizeof(archive->directory), "%s", directory);
	archive->manifest =
		or_exit(open_memstream(&archive->manifest_text, &archive->manifest_size));
}

static void add_file(struct archive *archive, const char *name, const char *text, size_t size)
{
	char path[100];

	snprintf(path, sizeof(path), "%.49s/%.49s", archive->directory, name);
	if (!archive->error && tar_add(archive->fd, path, text, size))
		archive->error = errno;
}

void archive_add(struct archive *archive, const char *name, const char *from, const char *text,
		 size_t size)
{
	archive->count++;
	fprintf(archive->manifest, "ok      %-32s %s\n", name, from);
	add_file(archive, name, text, size);
}

void archive_note_failure(struct archive *archive, const char *name, const char *from,
			  const char *why)
{
	archive->failed++;
	fprintf(archive->manifest, "failed  %-32s %s: %s\n", name, from, why);
}

static char *join(const char *const *words)
{
	char *joined = NULL;
	size_t size;
	FILE *stream = or_exit(open_memstream(&joined, &size));

	for (size_t i = 0; words[i]; i++)
		fprintf(stream, "%s%s", i ? " " : "", words[i]);
	or_exit(fclose(stream) ? NULL : joined);
	cni_printable(joined, "");
	return joined;
}

/* Takes out the lines that have none of the words. The kernel's command line may have secrets. */
static void filter(struct command_run *run, const char *words)
{
	char *left = run->output, *kept = NULL, *line;
	FILE *stream = or_exit(open_memstream(&kept, &run->length));
	regex_t wanted;

	or_exit(regcomp(&wanted, words, REG_EXTENDED | REG_ICASE | REG_NOSUB) ? NULL : &wanted);
	while ((line = strsep(&left, "\n")))
		if (!regexec(&wanted, line, 0, NULL, 0) && !strstr(line, "ommand line:"))
			fprintf(stream, "%s\n", line);
	regfree(&wanted);
	or_exit(fclose(stream) ? NULL : kept);
	free(run->output);
	run->output = kept;
}

/* What it printed is worth having whatever its status: doctor's says what it found. */
static void take_output(struct archive *archive, const char *name, struct command_run *run,
			const char *from)
{
	char why[COMMAND_FAILURE_SIZE];

	if (run->length)
		add_file(archive, name, run->output, run->length);
	if (run->status == 0 || (run->status > 0 && run->length && !*run->errors)) {
		archive->count++;
		fprintf(archive->manifest, "ok      %-32s %s\n", name, from);
		return;
	}
	snprintf(why, sizeof(why), "status %d%s%s", run->status, *run->errors ? ", " : "",
		 run->errors);
	archive_note_failure(archive, name, from,
			     run->missing      ? "is not installed"
			     : run->status < 0 ? run->errors
					       : why);
}

bool archive_run(struct archive *archive, const char *name, const char *const *arguments,
		 const char *words)
{
	cleanup_command struct command_run run = {.arguments = arguments, .seconds = SECONDS};
	char *from = join(arguments);

	command_run(&run);
	if (words)
		filter(&run, words);
	take_output(archive, name, &run, from);
	free(from);
	return !run.timed_out;
}

bool archive_end(struct archive *archive, const char *preface)
{
	char *text = NULL;
	size_t size;
	FILE *whole = or_exit(open_memstream(&text, &size));

	or_exit(fclose(archive->manifest) ? NULL : archive->manifest_text);
	fprintf(whole, "%s%s", preface, archive->manifest_text);
	or_exit(fclose(whole) ? NULL : text);
	add_file(archive, "MANIFEST", text, size);
	free(text);
	free(archive->manifest_text);
	if (!archive->error && tar_end(archive->fd))
		archive->error = errno;
	errno = archive->error;
	return !archive->error;
}
