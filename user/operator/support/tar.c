/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tar.c - writes a tar file (POSIX ustar) of files that are in memory. */
#include "operator/support/tar.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/io.h"

#define BLOCK 512

/* All texts; numbers are octal and end with a NUL. */
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

int tar_add(int fd, const char *name, const char *content, size_t size)
{
	static const char zeros[BLOCK];
	struct header header = {.mode = "0000600",
				.owner = "0000000",
				.group = "0000000",
				.type = '0',
				.magic = "ustar",
				.version = {'0', '0'}};

	snprintf(header.name, sizeof(header.name), "%s", name);
	snprintf(header.size, sizeof(header.size), "%011llo", (unsigned long long)size);
	snprintf(header.modified, sizeof(header.modified), "%011llo",
		 (unsigned long long)time(NULL) & 077777777777);
	fill_checksum(&header);
	if (cni_write_all(fd, (const char *)&header, sizeof(header)) ||
	    cni_write_all(fd, content, size))
		return -1;
	return cni_write_all(fd, zeros, (BLOCK - size % BLOCK) % BLOCK);
}

int tar_end(int fd)
{
	static const char zeros[2 * BLOCK];

	return cni_write_all(fd, zeros, sizeof(zeros));
}
