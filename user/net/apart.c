/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* apart.c - a process of its own for what may never end. */
#include "net/apart.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "cni/cleanup.h"

static int64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* A runtime waits until all who have our output have closed it. */
static void let_go_of_output(int own)
{
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int standard = 0; standard < STDERR_FILENO; standard++)
		dup2(nothing, standard);
	dup2(own, STDERR_FILENO);
	close(own);
}

/* Whether there was nothing to wait for. */
static bool pass_on(int from)
{
	char text[4096];
	ssize_t length = read(from, text, sizeof(text));

	if (length > 0 && write(STDERR_FILENO, text, (size_t)length) < 0)
		return false;
	return length > 0 || (length < 0 && errno == EINTR);
}

/* Whether it came to its end in time. */
static bool pass_on_all(int from, int milliseconds)
{
	struct pollfd readable = {.fd = from, .events = POLLIN};
	int64_t end = now() + milliseconds, left;
	int ready;

	while ((left = end - now()) > 0) {
		ready = poll(&readable, 1, (int)left);
		if (ready > 0 && !pass_on(from))
			return true;
	}
	return false;
}

bool run_apart(void (*work)(void *context), void *context, int milliseconds)
{
	int ends[2];
	bool ended;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC))
		return false;
	child = fork();
	if (!child) {
		let_go_of_output(ends[1]);
		work(context);
		_exit(0);
	}
	close(ends[1]);
	ended = child > 0 && pass_on_all(ends[0], milliseconds);
	close(ends[0]);
	/* What it waits for may be such that it can't be killed: nobody waits for it. */
	if (child > 0 && !ended)
		kill(child, SIGKILL);
	return ended;
}
