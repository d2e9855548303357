/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * exchange.c - what passes through a plugin's stdin and stdout until it has ended.
 */
#define _GNU_SOURCE
#include "cnirun/exchange.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cni/cleanup.h"
#include "cni/input.h"
#include "cnirun/output.h"

#define OUTPUT_LIMIT CNI_INPUT_LIMIT
#define OUTPUT_STEP 4096
#define MS_PER_SECOND 1000
/* For a child that still writes, as the tee of a shell script that logs. */
#define LEFT_OUTPUT_MS 1000
/* Without pidfd_open(), which some containers do not allow, we look now and then. */
#define LOOK_MS 20
#define NO_DEADLINE INT64_MAX

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * MS_PER_SECOND + now.tv_nsec / 1000000;
}

/* For poll(): -1 is for ever, 0 is over. */
static int ms_left(int64_t deadline)
{
	int64_t left;

	if (deadline == NO_DEADLINE)
		return -1;
	left = deadline - now_ms();
	if (left <= 0)
		return 0;
	return left < INT_MAX ? (int)left : INT_MAX;
}

static void close_end(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void exchange_close(struct exchange *exchange)
{
	close_end(&exchange->input);
	close_end(&exchange->output);
}

/* The plugin need not read all of its stdin: EPIPE is no error. */
static int send_some(struct exchange *exchange, struct cni_error *err)
{
	ssize_t sent = write(exchange->input, exchange->unsent, exchange->unsent_length);

	if (sent >= 0) {
		exchange->unsent += sent;
		exchange->unsent_length -= (size_t)sent;
	} else if (errno == EPIPE) {
		exchange->unsent_length = 0;
	} else if (errno != EAGAIN && errno != EINTR) {
		return cni_error_set(err, CNI_ERROR_IO, "cannot write to %s: %s", exchange->file,
				     strerror(errno));
	}
	if (!exchange->unsent_length)
		close_end(&exchange->input);
	return 0;
}

static int make_room(struct exchange *exchange)
{
	size_t wanted = exchange->room ? exchange->room * 2 : OUTPUT_STEP;
	char *grown;

	if (exchange->room - exchange->result->length > 1)
		return 0;
	grown = realloc(exchange->result->text, wanted);
	if (!grown)
		return -1;
	exchange->result->text = grown;
	exchange->room = wanted;
	return 0;
}

static int receive_some(struct exchange *exchange, struct cni_error *err)
{
	struct execute_output *result = exchange->result;
	ssize_t received;

	if (make_room(exchange))
		return cni_error_no_memory(err);
	received = read(exchange->output, result->text + result->length,
			exchange->room - result->length - 1);
	if (received < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (received < 0)
		return cni_error_set(err, CNI_ERROR_IO, "cannot read from %s: %s", exchange->file,
				     strerror(errno));
	if (!received)
		close_end(&exchange->output);
	result->length += (size_t)received;
	result->text[result->length] = '\0';
	if (result->length <= OUTPUT_LIMIT)
		return 0;
	return cni_error_set(err, CNI_ERROR_IO,
			     "%s wrote more than %zu bytes to stdout, no result is as long: killed",
			     exchange->file, (size_t)OUTPUT_LIMIT);
}

static int look_for_end(struct exchange *exchange, struct cni_error *err)
{
	pid_t found = waitpid(exchange->pid, &exchange->result->status, WNOHANG);

	if (found < 0 && errno != EINTR)
		return cni_error_set(err, CNI_ERROR_IO, "cannot wait for %s: %s", exchange->file,
				     strerror(errno));
	if (found <= 0)
		return 0;
	exchange->ended = true;
	close_end(&exchange->input);
	return 0;
}

/* Both ways at once: a plugin may write before it has read all, or never read. */
static int take_step(struct exchange *exchange, int process, int wait_ms, struct cni_error *err)
{
	struct pollfd ends[] = {
		{.fd = exchange->input, .events = POLLOUT},
		{.fd = exchange->output, .events = POLLIN},
		{.fd = exchange->ended ? -1 : process, .events = POLLIN},
	};

	if (process < 0 && !exchange->ended && (wait_ms < 0 || wait_ms > LOOK_MS))
		wait_ms = LOOK_MS;
	if (poll(ends, 3, wait_ms) < 0 && errno != EINTR)
		return cni_error_set(err, CNI_ERROR_IO, "cannot wait for %s: %s", exchange->file,
				     strerror(errno));
	if (ends[0].revents && send_some(exchange, err))
		return -1;
	if (ends[1].revents && receive_some(exchange, err))
		return -1;
	return exchange->ended ? 0 : look_for_end(exchange, err);
}

int exchange_all(struct exchange *exchange, unsigned int timeout, struct cni_error *err)
{
	cleanup_close int process = (int)syscall(SYS_pidfd_open, exchange->pid, 0);
	int64_t deadline = timeout ? now_ms() + (int64_t)timeout * MS_PER_SECOND : NO_DEADLINE;

	while (!exchange->ended || exchange->output >= 0) {
		bool ended_before = exchange->ended;
		int wait_ms = ms_left(deadline);

		if (!wait_ms && exchange->ended) {
			output_warn("%s has left a process that keeps its stdout open: not waited "
				    "for",
				    exchange->file);
			return 0;
		}
		if (!wait_ms)
			return cni_error_set(err, CNI_ERROR_IO,
					     "did not end within %u second%s and was killed, with "
					     "the processes that it had started; --timeout SECONDS "
					     "gives it more time",
					     timeout, timeout == 1 ? "" : "s");
		if (take_step(exchange, process, wait_ms, err))
			return -1;
		if (exchange->ended && !ended_before)
			deadline = now_ms() + LEFT_OUTPUT_MS;
	}
	return 0;
}
