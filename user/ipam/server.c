/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * server.c - the daemon: HTTP over a UNIX socket.
 *
 * One thread: requests are answered one after the other, as they change one file. Meanwhile others
 * may connect and send; who sends nothing or too much is dropped by libmicrohttpd's limits.
 */
#include "ipam/server.h"

#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/memory.h"
#include "cnirun/output.h"
#include "ipam/addresses.h"
#include "ipam/api.h"
#include "ipam/socket.h"
#include "ipam/state.h"

#define BODY_LIMIT ((size_t)64 << 10)
#define CONNECTIONS 512u
/* Seconds. One request is answered after the other, so the last of many waits in silence, too. Only
 * root can connect. */
#define SILENCE 120u
#define MS_PER_SECOND 1000
#define LAST_ROUNDS 10
#define CONTENT_TYPE "application/vnd.docker.plugins.v1.2+json"

/* What has come of a request's body. */
struct body {
	size_t length;
	bool too_long;
	char text[];
};

static int signal_pipe[2] = {-1, -1};

static void on_signal(int number)
{
	int error = errno;

	/* The pipe never blocks: one byte in it is enough. */
	if (write(signal_pipe[1], "", 1) < 0)
		errno = 0;
	errno = error;
}

/* `text` is freed with the response. */
static enum MHD_Result reply(struct MHD_Connection *connection, unsigned int status, char *text)
{
	struct MHD_Response *response =
		MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE);
	enum MHD_Result result;

	need(response);
	MHD_add_response_header(response, "Content-Type", CONTENT_TYPE);
	/* A connection that Docker keeps for later may be closed just when it is used again. Docker
	 * would repeat the request, but without its text. */
	MHD_add_response_header(response, "Connection", "close");
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static struct body *append(struct body *body, const char *data, size_t size)
{
	if (body->too_long || size > BODY_LIMIT - body->length) {
		body->too_long = true;
		return body;
	}
	body = need(realloc(body, sizeof(*body) + body->length + size + 1));
	memcpy(body->text + body->length, data, size);
	body->length += size;
	body->text[body->length] = '\0';
	return body;
}

static enum MHD_Result answer(struct MHD_Connection *connection, const struct settings *settings,
			      const char *path, const struct body *body)
{
	unsigned int status;
	char *text;

	if (body->too_long)
		return reply(connection, MHD_HTTP_CONTENT_TOO_LARGE,
			     api_error_text("the request is longer than 64 KiB"));
	status = api_answer(settings, path, body->text, body->length, &text);
	if (status != MHD_HTTP_OK)
		output_warn("%s: %s", path, text);
	return reply(connection, status, text);
}

/* libmicrohttpd calls it with the headers, with each part of the body, and at the end. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection,
				  const char *path, const char *method, const char *version,
				  const char *data, size_t *size, void **request)
{
	struct body *body = *request;

	if (!body) {
		*request = need(calloc(1, sizeof(*body) + 1));
		return MHD_YES;
	}
	if (*size) {
		*request = append(body, data, *size);
		*size = 0;
		return MHD_YES;
	}
	if (strcmp(method, MHD_HTTP_METHOD_POST))
		return reply(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
			     api_error_text("Docker's plugin API knows POST only"));
	return answer(connection, context, path, body);
}

static void on_completed(void *context, struct MHD_Connection *connection, void **request,
			 enum MHD_RequestTerminationCode how)
{
	free(*request);
	*request = NULL;
}

static int catch_signals(struct cni_error *err)
{
	const struct sigaction action = {.sa_handler = on_signal};

	if (pipe2(signal_pipe, O_CLOEXEC | O_NONBLOCK))
		return cni_error_set(err, CNI_ERROR_IO, "cannot make a pipe: %s", strerror(errno));
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	return 0;
}

static void wait_for_events(struct MHD_Daemon *daemon, struct pollfd events[2], int limit)
{
	MHD_UNSIGNED_LONG_LONG timeout;

	if (MHD_get_timeout(daemon, &timeout) == MHD_YES && timeout < (unsigned int)limit)
		limit = (int)timeout;
	poll(events, 2, limit);
}

static unsigned int connections(struct MHD_Daemon *daemon)
{
	const union MHD_DaemonInfo *information =
		MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);

	return information ? information->num_connections : 0;
}

static int serve(struct MHD_Daemon *daemon, struct cni_error *err)
{
	const union MHD_DaemonInfo *information =
		MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);
	struct pollfd events[] = {
		{.fd = information ? information->listen_fd : -1, .events = POLLIN},
		{.fd = signal_pipe[0], .events = POLLIN},
	};

	while (!events[1].revents) {
		if (MHD_run(daemon) != MHD_YES)
			return cni_error_set(err, CNI_ERROR_IO, "cannot serve any longer");
		wait_for_events(daemon, events, (int)SILENCE * MS_PER_SECOND);
	}
	/* What was answered is sent. Who comes later waits for the next daemon, if systemd has the
	 * socket. */
	MHD_quiesce_daemon(daemon);
	events[1].fd = -1;
	for (int i = 0; i < LAST_ROUNDS && connections(daemon); i++) {
		MHD_run(daemon);
		wait_for_events(daemon, events, MS_PER_SECOND / LAST_ROUNDS);
	}
	return 0;
}

static int repair_subnet(const struct settings *settings, const char *text, struct cni_error *err)
{
	cleanup_state struct state state = STATE_NONE;
	struct prefix subnet;

	prefix_parse(text, &subnet);
	return state_open(&state, settings, &subnet, err) ? -1 : address_repair(&state, err);
}

/* What a killed daemon has left, as the next request may come late. Whatever fails now fails with
 * the requests, which say so: a daemon that ends takes systemd's socket with it. */
static void repair(const struct settings *settings)
{
	cleanup_error struct cni_error problem = {0};
	cleanup_json json_t *subnets = state_subnets(settings, &problem);
	const json_t *subnet;
	size_t index;

	json_array_foreach (subnets, index, subnet) {
		/* A plugin that hangs must not keep the others waiting. */
		if (repair_subnet(settings, json_string_value(subnet), &problem))
			break;
	}
	if (cni_error_is_set(&problem))
		output_warn("%s", cni_error_message(&problem));
}

static int take_passed(struct settings *settings, struct cni_error *err)
{
	cleanup_free char *path = NULL;
	int fd = socket_take_passed(&path, err);

	return fd < 0 || settings_name_driver(settings, path, err) ? -1 : fd;
}

/* The lock keeps two daemons that are started at once from removing each other's socket. */
static int make_socket(const struct settings *settings, struct cni_error *err)
{
	cleanup_state struct state state = STATE_NONE;

	return state_lock_all(&state, settings, err) ? -1 : socket_listen(settings->socket, err);
}

int server_run(struct settings *settings, struct cni_error *err)
{
	int passed = take_passed(settings, err), fd = passed, failed;
	struct MHD_Daemon *daemon;

	if (cni_error_is_set(err))
		return -1;
	repair(settings);
	if (passed < 0)
		fd = make_socket(settings, err);
	if (fd < 0 || catch_signals(err))
		return -1;
	daemon = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, on_request, settings,
				  MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
				  CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, SILENCE,
				  MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL, MHD_OPTION_END);
	failed = daemon ? serve(daemon, err)
			: cni_error_set(err, CNI_ERROR_IO, "cannot start libmicrohttpd");
	if (passed < 0)
		unlink(settings->socket);
	if (daemon)
		MHD_stop_daemon(daemon);
	return failed;
}
