/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * process_tree.c - ends a process together with what it has started.
 *
 * A process group would not do: Ctrl-C of a terminal would no longer reach the plugin, and
 * a session of its own would save a child.
 */
#define _GNU_SOURCE
#include "cnirun/process_tree.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* 5 seconds altogether. */
#define ROUNDS 500
#define PAUSE_US 10000

static bool is_child(idtype_t type, pid_t pid)
{
	siginfo_t information;

	return !waitid(type, (id_t)pid, &information, WEXITED | WNOHANG | WNOWAIT);
}

bool process_tree_has_children(void)
{
	return is_child(P_ALL, 0);
}

/* The kernel says whose children they are: /proc may be another PID namespace's. */
static void kill_children(void)
{
	DIR *processes = opendir("/proc");
	const struct dirent *entry;

	if (!processes)
		return;
	while ((entry = readdir(processes))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid > 0 && is_child(P_PID, pid))
			kill(pid, SIGKILL);
	}
	closedir(processes);
}

/* Whether all of them (pid -1: any child) have ended. */
static bool reap(pid_t pid)
{
	pid_t reaped;

	do
		reaped = waitpid(pid, NULL, WNOHANG);
	while (reaped > 0 || (reaped < 0 && errno == EINTR));
	return reaped < 0;
}

void process_tree_kill(pid_t child, bool others)
{
	/* What loses its parent below us becomes our child, and we have no others. */
	if (!others)
		prctl(PR_SET_CHILD_SUBREAPER, 1);
	kill(child, SIGKILL);
	for (int i = 0; i < ROUNDS && !reap(others ? child : -1); i++) {
		if (!others)
			kill_children();
		usleep(PAUSE_US);
	}
	if (!others)
		prctl(PR_SET_CHILD_SUBREAPER, 0);
}
