/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* processes.c - which process has a socket open. */
#include "net/processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/text.h"

#define MAX_COMMAND_LINE 65536

/* Somebody may have opened millions of files, to keep us busy. Seconds of our own CPU time:
 * that others are busy is no reason to stop early. */
#define MAX_SECONDS 0.5

struct search {
	struct socket_process *holders;
	size_t count;
	size_t missing;
	double end;
	const char *argument;
};

static double time_used(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static bool goes_on(const struct search *search)
{
	return search->missing && time_used() < search->end;
}

static int compare_inodes(const void *left, const void *right)
{
	const struct socket_process *a = left, *b = right;

	return a->inode < b->inode ? -1 : a->inode > b->inode;
}

/* What a process calls itself goes into logs and to terminals. */
static void read_name(int directory, char name[PROCESS_NAME_SIZE])
{
	cleanup_close int fd = openat(directory, "comm", O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, name, PROCESS_NAME_SIZE - 1);

	if (length <= 0) {
		snprintf(name, PROCESS_NAME_SIZE, "a process");
		return;
	}
	if (name[length - 1] == '\n')
		length--;
	name[length] = '\0';
	cni_printable(name, "");
}

bool process_name(pid_t pid, char name[PROCESS_NAME_SIZE])
{
	char path[32];
	cleanup_close int directory = -1;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory >= 0)
		read_name(directory, name);
	return directory >= 0;
}

/* Among the first 64 KiB, each ended by a zero byte. */
static bool has_argument(int directory, const char *argument)
{
	cleanup_close int fd = openat(directory, "cmdline", O_RDONLY | O_CLOEXEC);
	cleanup_free char *text = malloc(MAX_COMMAND_LINE + 1);
	size_t length = 0;
	ssize_t got;

	while (text && fd >= 0 && length < MAX_COMMAND_LINE &&
	       (got = read(fd, text + length, MAX_COMMAND_LINE - length)) > 0)
		length += (size_t)got;
	for (size_t i = 0; i < length; i += strlen(text + i) + 1) {
		text[length] = '\0';
		if (!strcmp(text + i, argument))
			return true;
	}
	return false;
}

/* The inode of "socket:[123]", or 0. */
static uint32_t socket_inode(int directory, const char *name)
{
	static const char prefix[] = "socket:[";
	char target[64];
	ssize_t length = readlinkat(directory, name, target, sizeof(target) - 1);

	if (length <= 0)
		return 0;
	target[length] = '\0';
	if (strncmp(target, prefix, strlen(prefix)) != 0)
		return 0;
	return (uint32_t)strtoul(target + strlen(prefix), NULL, 10);
}

static void note_holder(struct search *search, uint32_t inode, int directory, pid_t pid)
{
	struct socket_process wanted = {.inode = inode};
	struct socket_process *holder =
		bsearch(&wanted, search->holders, search->count, sizeof(wanted), compare_inodes);

	if (!holder || holder->pid)
		return;
	holder->pid = pid;
	read_name(directory, holder->name);
	holder->has_argument = search->argument && has_argument(directory, search->argument);
	search->missing--;
}

static void search_descriptors(struct search *search, int directory, pid_t pid)
{
	int fd = openat(directory, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *descriptors = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!descriptors) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while (goes_on(search) && (entry = readdir(descriptors))) {
		uint32_t inode = socket_inode(fd, entry->d_name);

		if (inode)
			note_holder(search, inode, directory, pid);
	}
	closedir(descriptors);
}

static void search_process(struct search *search, int proc, const char *name)
{
	pid_t pid = (pid_t)strtol(name, NULL, 10); /* 0: it is no process */
	cleanup_close int directory = -1;

	if (!pid)
		return;
	directory = openat(proc, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory >= 0)
		search_descriptors(search, directory, pid);
}

void processes_find(struct socket_process *holders, size_t count, const char *argument)
{
	struct search search = {
		.holders = holders,
		.count = count,
		.missing = count,
		.end = time_used() + MAX_SECONDS,
		.argument = argument,
	};
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	qsort(holders, count, sizeof(*holders), compare_inodes);
	while (proc && goes_on(&search) && (entry = readdir(proc)))
		search_process(&search, dirfd(proc), entry->d_name);
	if (proc)
		closedir(proc);
}
