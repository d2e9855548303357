/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * locker.c - a process that locks (flock) every file that it can open, and holds the locks until it
 * is killed.
 */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tool.h"

const char tool_usage[] =
	"locker [--name NAME] FILE...\n"
	"     opens each file, for reading or else for writing, and locks it\n"
	"     prints the names of the locked files, then \"ready\"; runs until it is killed\n"
	"     --name: the process's name in /proc\n";

static int open_somehow(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	return fd < 0 ? open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK) : fd;
}

int main(int argc, char **argv)
{
	int i = 1;

	if (argc > 2 && !strcmp(argv[1], "--name")) {
		if (prctl(PR_SET_NAME, argv[2]))
			die("prctl");
		i = 3;
	}
	if (i >= argc)
		die_usage();
	for (; i < argc; i++) {
		int fd = open_somehow(argv[i]);

		if (fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB))
			puts(argv[i]);
	}
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
