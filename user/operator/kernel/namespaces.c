/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* namespaces.c - the network namespaces that veths of this host lead to. */
#include "operator/kernel/namespaces.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/memory.h"
#include "lib/cleanup.h"
#include "net/netlink.h"

#define NAMESPACE_LIMIT 65536

struct reading {
	struct namespaces *namespaces;
	struct netlink *socket;
	ino_t *seen; /* a container has many processes */
	size_t seen_count;
};

static bool is_new(struct reading *reading, const char *path)
{
	struct stat status;

	if (stat(path, &status))
		return false;
	for (size_t i = 0; i < reading->seen_count; i++)
		if (reading->seen[i] == status.st_ino)
			return false;
	if (reading->seen_count == NAMESPACE_LIMIT)
		return false;
	*ARRAY_ADD(reading->seen, reading->seen_count) = status.st_ino;
	return true;
}

static void take(struct reading *reading, const char *path)
{
	struct namespaces *namespaces = reading->namespaces;
	struct namespace *added;
	int fd, number;

	if (!is_new(reading, path))
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	number = fd < 0 ? -1 : netlink_netns_id(reading->socket, fd);
	if (number < 0) {
		if (fd >= 0)
			close(fd);
		return;
	}
	added = ARRAY_ADD(namespaces->list, namespaces->count);
	*added = (struct namespace){.number = number, .fd = fd};
	snprintf(added->path, sizeof(added->path), "%s", path);
}

static void take_directory(struct reading *reading, const char *directory, bool processes)
{
	char path[NAMESPACE_PATH_SIZE];
	const struct dirent *entry;
	DIR *stream = opendir(directory);

	while (stream && (entry = readdir(stream))) {
		if (processes ? !isdigit((unsigned char)*entry->d_name) : *entry->d_name == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s%s", directory, entry->d_name,
			 processes ? "/ns/net" : "");
		take(reading, path);
	}
	if (stream)
		closedir(stream);
}

/* One for each namespace, and 1024 is the usual limit. */
static void allow_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

void namespaces_read(struct namespaces *namespaces, struct netlink *socket)
{
	struct reading reading = {.namespaces = namespaces, .socket = socket};

	allow_descriptors();
	take_directory(&reading, "/run/netns", false);
	take_directory(&reading, "/proc", true);
	free(reading.seen);
}

void namespaces_release(struct namespaces *namespaces)
{
	for (size_t i = 0; i < namespaces->count; i++)
		close(namespaces->list[i].fd);
	free(namespaces->list);
	*namespaces = (struct namespaces){0};
}

const struct namespace *namespaces_find(const struct namespaces *namespaces, int number)
{
	for (size_t i = 0; i < namespaces->count; i++)
		if (namespaces->list[i].number == number)
			return &namespaces->list[i];
	return NULL;
}
