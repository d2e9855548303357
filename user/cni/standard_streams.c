/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* standard_streams.c - standard input, output and error that are closed harm nothing. */
#include "cni/standard_streams.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

void standard_streams_guard(void)
{
	/* The lowest number that is free is the one that is closed. */
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_RDWR);
	signal(SIGPIPE, SIG_IGN);
}
