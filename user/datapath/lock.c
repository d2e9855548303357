/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* lock.c - one writer at a time for each host. */
#include "datapath/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <time.h>

#define TIMEOUT_SECONDS 10

static void interrupt(int signal)
{
	(void)signal;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Waits in the kernel, in line with others; a timer ends the wait. It ticks, because
 * a single shot could fire just before flock is entered. */
static int wait_for_lock(int fd)
{
	struct sigaction action = {.sa_handler = interrupt}, old_action;
	struct itimerval tick = {{0, 100000}, {0, 100000}}, old_timer;
	double end = now() + TIMEOUT_SECONDS;
	int result;

	sigaction(SIGALRM, &action, &old_action);
	setitimer(ITIMER_REAL, &tick, &old_timer);
	do
		result = flock(fd, LOCK_EX);
	while (result && errno == EINTR && now() < end);
	setitimer(ITIMER_REAL, &old_timer, NULL);
	sigaction(SIGALRM, &old_action, NULL);
	return result;
}

static void describe_process(int pid, char *text, size_t size)
{
	char path[64], command[64] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	file = fopen(path, "re");
	if (file) {
		if (!fgets(command, sizeof(command), file))
			command[0] = '\0';
		fclose(file);
	}
	command[strcspn(command, "\n")] = '\0';
	snprintf(text, size, "process %d (%s)", pid, command[0] ? command : "unknown");
}

/* A line: "1: FLOCK  ADVISORY  WRITE 1234 00:04:4026531833 0 EOF". */
static void find_holder(int fd, char *text, size_t size)
{
	FILE *file = fopen("/proc/locks", "re");
	unsigned int device_major, device_minor;
	unsigned long inode;
	struct stat status;
	char line[256];
	int pid;

	snprintf(text, size, "an unknown process");
	if (!file)
		return;
	while (!fstat(fd, &status) && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%*d: FLOCK %*s %*s %d %x:%x:%lu", &pid, &device_major,
			   &device_minor, &inode) != 4)
			continue;
		if (inode != status.st_ino || makedev(device_major, device_minor) != status.st_dev)
			continue;
		describe_process(pid, text, size);
		break;
	}
	fclose(file);
}

static int take(const char *path, int flags, const char *what, struct cni_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | flags);
	char holder[128];

	if (fd < 0)
		return cni_error_set(err, CNI_ERROR_IO, "%s does not open: %s", path,
				     strerror(errno));
	if (!flock(fd, LOCK_EX | LOCK_NB))
		return fd;
	if (errno == EWOULDBLOCK && !wait_for_lock(fd))
		return fd;
	if (errno == EINTR) {
		find_holder(fd, holder, sizeof(holder));
		cni_error_set(err, CNI_ERROR_TRY_AGAIN,
			      "the lock of %s (%s) has been held by %s for over %d seconds; try"
			      " again later",
			      what, path, holder, TIMEOUT_SECONDS);
	} else {
		cni_error_set(err, CNI_ERROR_IO, "cannot lock %s: %s", path, strerror(errno));
	}
	close(fd);
	return -1;
}

int lock_take(struct cni_error *err)
{
	return take("/proc/self/ns/net", 0, "this host's port mappings", err);
}

int lock_take_directory(const char *path, const char *what, struct cni_error *err)
{
	return take(path, O_DIRECTORY, what, err);
}
