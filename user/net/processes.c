/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* processes.c - which process has a socket open. */
#include "net/processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/io.h"
#include "lib/memory.h"
#include "lib/text.h"
#include "net/netlink.h"

#define MAX_COMMAND_LINE 65536
#define MAX_CGROUPS 4096 /* of one process */
#define MIN_UNIQUE_ID 12

/* Somebody may have opened millions of files, to keep us busy. Seconds of our own CPU time:
 * that others are busy is no reason to stop early. */
#define MAX_SECONDS 0.5

struct search {
	struct host_socket **by_inode; /* sorted: a local user may have opened many */
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
	const struct host_socket *const *a = left, *const *b = right;

	return (*a)->inode < (*b)->inode ? -1 : (*a)->inode > (*b)->inode;
}

size_t process_file(pid_t pid, const char *file, char *text, size_t size)
{
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	return text_file_read(path, text, size);
}

bool process_name(pid_t pid, char name[PROCESS_NAME_SIZE])
{
	size_t length = process_file(pid, "comm", name, PROCESS_NAME_SIZE);

	if (length && name[length - 1] == '\n')
		name[length - 1] = '\0';
	cni_printable(name, "");
	return length;
}

/* Among the first 64 KiB, each ended by a zero byte. */
static bool has_argument(pid_t pid, const char *argument)
{
	char text[MAX_COMMAND_LINE];
	size_t length = process_file(pid, "cmdline", text, sizeof(text));

	for (size_t i = 0; i < length; i += strlen(text + i) + 1)
		if (!strcmp(text + i, argument))
			return true;
	return false;
}

static void note_holder(struct search *search, uint32_t inode, pid_t pid)
{
	struct host_socket wanted = {.inode = inode}, *key = &wanted;
	struct host_socket **found = bsearch(&key, search->by_inode, search->count,
					     sizeof(struct host_socket *), compare_inodes);
	struct socket_holder *holder;

	if (!found || (*found)->holder.pid)
		return;
	holder = &(*found)->holder;
	holder->pid = pid;
	if (!process_name(pid, holder->name))
		snprintf(holder->name, sizeof(holder->name), "a process");
	holder->has_argument = search->argument && has_argument(pid, search->argument);
	search->missing--;
}

/* 0: there is no more. */
static pid_t next_process(DIR *proc)
{
	struct dirent *entry;
	pid_t pid = 0;

	while (!pid && (entry = readdir(proc)))
		pid = (pid_t)strtol(entry->d_name, NULL, 10); /* 0: it is no process */
	return pid;
}

static void search_process(struct search *search, pid_t pid)
{
	static const char prefix[] = "socket:[";
	cleanup_listing DIR *files = NULL;
	struct dirent *entry;
	char path[32], target[64];

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	files = opendir(path);
	while (files && goes_on(search) && (entry = readdir(files))) {
		ssize_t length =
			readlinkat(dirfd(files), entry->d_name, target, sizeof(target) - 1);

		target[length > 0 ? length : 0] = '\0';
		if (!strncmp(target, prefix, strlen(prefix)))
			note_holder(search, (uint32_t)strtoul(target + strlen(prefix), NULL, 10),
				    pid);
	}
}

void processes_find_holders(struct socket_list *sockets, const char *argument)
{
	struct search search = {
		.by_inode = or_exit(calloc(sockets->count, sizeof(struct host_socket *))),
		.count = sockets->count,
		.missing = sockets->count,
		.end = time_used() + MAX_SECONDS,
		.argument = argument,
	};
	cleanup_listing DIR *proc = opendir("/proc");
	pid_t pid;

	for (size_t i = 0; i < sockets->count; i++)
		search.by_inode[i] = &sockets->sockets[i];
	qsort(search.by_inode, search.count, sizeof(struct host_socket *), compare_inodes);
	while (proc && goes_on(&search) && (pid = next_process(proc)))
		search_process(&search, pid);
	free(search.by_inode);
}

static bool is_in_cgroup(pid_t pid, const char *name)
{
	char text[MAX_CGROUPS];

	process_file(pid, "cgroup", text, sizeof(text));
	return strstr(text, name);
}

bool processes_are_in_container(const char *container_id)
{
	double end = time_used() + MAX_SECONDS;
	bool found = false;
	cleanup_listing DIR *proc = NULL;
	pid_t pid;

	if (strlen(container_id) >= MIN_UNIQUE_ID)
		proc = opendir("/proc");
	while (proc && !found && time_used() < end && (pid = next_process(proc)))
		found = is_in_cgroup(pid, container_id);
	return found;
}

/* Returns the number by which we know the process's network namespace; -1: by none, as our own. */
static int netns_of_process(struct netlink *socket, pid_t pid, ino_t *last)
{
	cleanup_close int netns = -1;
	struct stat status;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
	/* Most processes are in the namespace of the one before. */
	if (stat(path, &status) || status.st_ino == *last)
		return -1;
	*last = status.st_ino;
	netns = open(path, O_RDONLY | O_CLOEXEC);
	return netns < 0 ? -1 : netlink_netns_id(socket, netns);
}

bool processes_are_in_netns(int number)
{
	cleanup_netlink struct netlink *socket = netlink_open(NETLINK_ROUTE, NULL);
	cleanup_listing DIR *proc = opendir("/proc");
	double end = time_used() + MAX_SECONDS;
	bool found = false;
	ino_t last = 0;
	pid_t pid;

	if (!socket || !proc || number < 0)
		return true;
	while (!found && time_used() < end && (pid = next_process(proc)))
		found = netns_of_process(socket, pid, &last) == number;
	return found;
}
