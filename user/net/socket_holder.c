/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* socket_holder.c - which process has a socket. */
#include "net/socket_holder.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cni/cleanup.h"

/* The name of an entry that is a number, or -1. */
static int number_of(const struct dirent *entry)
{
	char *end;
	long number = strtol(entry->d_name, &end, 10);

	return end == entry->d_name || *end || number < 0 || number > INT32_MAX ? -1 : (int)number;
}

static bool has_socket(int directory, const char *link, const char *wanted)
{
	char target[64];
	ssize_t length = readlinkat(directory, link, target, sizeof(target) - 1);

	if (length < 0)
		return false;
	target[length] = '\0';
	return !strcmp(target, wanted);
}

/* Which of the process's file descriptors it is, or -1. */
static int find_fd(const char *process, const char *wanted)
{
	char path[64];
	struct dirent *entry;
	DIR *directory;
	int found = -1;

	snprintf(path, sizeof(path), "/proc/%.16s/fd", process);
	directory = opendir(path);
	while (found < 0 && directory && (entry = readdir(directory)))
		if (has_socket(dirfd(directory), entry->d_name, wanted))
			found = number_of(entry);
	if (directory)
		closedir(directory);
	return found;
}

static void read_command(struct socket_holder *holder)
{
	char path[64];
	cleanup_close int fd = -1;
	ssize_t length = 0;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)holder->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		length = read(fd, holder->command, sizeof(holder->command) - 1);
	holder->command[length < 0 ? 0 : length] = '\0';
	holder->command[strcspn(holder->command, "\n")] = '\0';
}

bool socket_holder_find(uint32_t inode, struct socket_holder *holder)
{
	DIR *processes = opendir("/proc");
	struct dirent *entry;
	char wanted[32];
	bool found = false;

	snprintf(wanted, sizeof(wanted), "socket:[%" PRIu32 "]", inode);
	while (!found && processes && (entry = readdir(processes))) {
		*holder = (struct socket_holder){.pid = number_of(entry)};
		if (holder->pid > 0)
			holder->fd = find_fd(entry->d_name, wanted);
		found = holder->pid > 0 && holder->fd >= 0;
	}
	if (processes)
		closedir(processes);
	if (found)
		read_command(holder);
	return found;
}

int socket_holder_borrow(const struct socket_holder *holder)
{
	cleanup_close int process = (int)syscall(SYS_pidfd_open, holder->pid, 0);

	return process < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, process, holder->fd, 0);
}
