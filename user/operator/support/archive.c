/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* archive.c - the tar that `support` makes, and its manifest. */
#include "operator/support/archive.h"

#include <errno.h>
#include <regex.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/io.h"
#include "lib/memory.h"
#include "lib/text.h"
#include "operator/run_command.h"

#define SECONDS 10
#define BLOCK 512

/* Of POSIX ustar. All texts; numbers are octal and end with a NUL. */
struct header {
	char name[100];
	char mode[8], owner[8], group[8];
	char size[12], modified[12];
	char checksum[8];
	char type;
	char link[100];
	char magic[6], version[2];
	char owner_name[32], group_name[32];
	char major[8], minor[8];
	char prefix[155];
	char reserved[12];
};

_Static_assert(sizeof(struct header) == BLOCK, "a header is one block");

/* The sum of the bytes of the header, with blanks in the place of the sum. */
static void fill_checksum(struct header *header)
{
	const uint8_t *bytes = (const uint8_t *)header;
	unsigned int sum = 0;

	memset(header->checksum, ' ', sizeof(header->checksum));
	for (size_t i = 0; i < sizeof(*header); i++)
		sum += bytes[i];
	snprintf(header->checksum, sizeof(header->checksum), "%06o", sum & 0777777);
}

/* With mode 0600. The directory's name and its own are cut to what a header holds. */
static void add_file(struct archive *archive, const char *name, const char *text, size_t size)
{
	static const char zeros[BLOCK];
	struct header header = {.mode = "0000600",
				.owner = "0000000",
				.group = "0000000",
				.type = '0',
				.magic = "ustar",
				.version = {'0', '0'}};

	snprintf(header.prefix, sizeof(header.prefix), "%s", archive->directory);
	snprintf(header.name, sizeof(header.name), "%s", name);
	snprintf(header.size, sizeof(header.size), "%011llo", (unsigned long long)size);
	snprintf(header.modified, sizeof(header.modified), "%011llo",
		 (unsigned long long)time(NULL) & 077777777777);
	fill_checksum(&header);
	if (!archive->error && (cni_write_all(archive->fd, (const char *)&header, sizeof(header)) ||
				cni_write_all(archive->fd, text, size) ||
				cni_write_all(archive->fd, zeros, (BLOCK - size % BLOCK) % BLOCK)))
		archive->error = errno;
}

void archive_begin(struct archive *archive, int fd, const char *directory, const char *preface)
{
	*archive = (struct archive){.fd = fd};
	snprintf(archive->directory, sizeof(archive->directory), "%s", directory);
	archive->manifest =
		or_exit(open_memstream(&archive->manifest_text, &archive->manifest_size));
	fputs(preface, archive->manifest);
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
	char why[sizeof(run->errors) + 32];

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

bool archive_end(struct archive *archive)
{
	static const char zeros[2 * BLOCK];

	or_exit(fclose(archive->manifest) ? NULL : archive->manifest_text);
	add_file(archive, "MANIFEST", archive->manifest_text, archive->manifest_size);
	free(archive->manifest_text);
	if (!archive->error && cni_write_all(archive->fd, zeros, sizeof(zeros)))
		archive->error = errno;
	errno = archive->error;
	return !archive->error;
}
