/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* container_file.c - files of containers, as their processes have them. */
#include "operator/kernel/container_file.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/memory.h"

#define READ_MS 300
#define TRIES_MOST 3 /* processes of a container: one that has the file is enough */

/* Runs in a child, as the container chooses what stands at this path, and on what file system. */
static void __attribute__((noreturn)) copy_file(const char *root, const char *path, int out)
{
	struct open_how how = {.flags = O_RDONLY | O_NONBLOCK | O_NOCTTY,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	int directory = open(root, O_PATH | O_DIRECTORY);
	int file = (int)syscall(SYS_openat2, directory, path, &how, sizeof(how));
	char text[CONTAINER_FILE_SIZE];
	ssize_t length = file < 0 ? 0 : read(file, text, sizeof(text) - 1);

	_exit(length > 0 && write(out, text, (size_t)length) == length ? 0 : 1);
}

/* Reads what there is after READ_MS. Returns the length. */
static size_t read_file(const char *root, const char *path, char text[CONTAINER_FILE_SIZE])
{
	struct pollfd copied = {.events = POLLIN};
	ssize_t length = 0;
	int ends[2];
	pid_t child;

	if (pipe2(ends, O_CLOEXEC))
		return 0;
	child = fork();
	if (!child)
		copy_file(root, path, ends[1]);
	close(ends[1]);
	copied.fd = ends[0];
	if (child > 0 && poll(&copied, 1, READ_MS) == 1)
		length = read(ends[0], text, CONTAINER_FILE_SIZE - 1);
	close(ends[0]);
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	text[length > 0 ? length : 0] = '\0';
	return length > 0 ? (size_t)length : 0;
}

void container_files_read(const ino_t *netns, size_t count, const char *path,
			  void (*take)(void *context, size_t number, const char *text),
			  void *context)
{
	cleanup_free int *tries = or_exit(calloc(count + 1, sizeof(*tries)));
	cleanup_listing DIR *processes = opendir("/proc");
	char text[CONTAINER_FILE_SIZE], name[64];
	const struct dirent *entry;
	struct stat status;

	while (count && processes && (entry = readdir(processes))) {
		if (!isdigit((unsigned char)*entry->d_name))
			continue;
		snprintf(name, sizeof(name), "/proc/%.16s/ns/net", entry->d_name);
		if (stat(name, &status))
			continue;
		snprintf(name, sizeof(name), "/proc/%.16s/root", entry->d_name);
		for (size_t i = 0; i < count; i++) {
			if (netns[i] != status.st_ino || tries[i] >= TRIES_MOST)
				continue;
			tries[i]++;
			if (!read_file(name, path, text))
				continue;
			tries[i] = TRIES_MOST;
			take(context, i, text);
		}
	}
}
