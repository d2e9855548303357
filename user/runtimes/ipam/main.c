/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * main.c - cni-ipam: Docker's addresses from CNI's IPAM plugins; the daemon, HTTP over a UNIX
 * socket.
 *
 * A process of its own answers each request, so that a plugin that hangs delays nobody else; the
 * locks of state.h order them. This one, with one thread, reads the requests and sends the answers.
 * Who sends nothing or too much is dropped by libmicrohttpd's limits.
 */
#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/io.h"
#include "lib/memory.h"
#include "runtimes/cnirun/output.h"
#include "runtimes/ipam/addresses.h"
#include "runtimes/ipam/api.h"
#include "runtimes/ipam/reconcile.h"
#include "runtimes/ipam/settings.h"
#include "runtimes/ipam/state.h"

#define BODY_LIMIT ((size_t)64 << 10)
#define CONNECTIONS 512u
#define OTHER_FILES 16 /* the daemon's own */
#define SILENCE 60u    /* seconds; only root can connect */
#define MS_PER_SECOND 1000
#define DOCKER_ROUNDS 600 /* as many seconds Docker may take to start */
#define LAST_ROUNDS 10
#define ANSWER 3 /* the worker's only file behind the standard streams */
#define CONTENT_TYPE "application/vnd.docker.plugins.v1.2+json"

struct request {
	struct request *next; /* that a worker answers, too */
	struct MHD_Connection *connection;
	char *body;
	size_t length;
	bool too_long;
	pid_t worker;
	int answer; /* "STATUS BODY" in a file in memory */
	bool answered;
};

static struct request *pending;
static int signal_pipe[2] = {-1, -1};
static volatile sig_atomic_t ends;

static void on_signal(int number)
{
	int error = errno;

	ends |= number != SIGCHLD;
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

	or_exit(response);
	MHD_add_response_header(response, "Content-Type", CONTENT_TYPE);
	/* A connection that Docker keeps for later may be closed just when it is used again. Docker
	 * would repeat the request, but without its text. */
	MHD_add_response_header(response, "Connection", "close");
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static void append(struct request *request, const char *data, size_t size)
{
	request->too_long |= size > BODY_LIMIT - request->length;
	if (request->too_long)
		return;
	request->body = or_exit(realloc(request->body, request->length + size));
	memcpy(request->body + request->length, data, size);
	request->length += size;
}

/* A worker ends with its daemon, as nobody gets its answer then, and has none of the daemon's
 * files: neither connections nor the pipe of the signals. */
static void become_worker(pid_t daemon, int answer)
{
	static const int signals[] = {SIGCHLD, SIGTERM, SIGINT};

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		signal(signals[i], SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != daemon)
		_exit(EXIT_FAILURE);
	if (answer != ANSWER && answer >= 0)
		dup3(answer, ANSWER, O_CLOEXEC);
	close_range(answer < 0 ? ANSWER : ANSWER + 1, ~0U, 0);
}

static void work(const struct settings *settings, const char *path, const struct request *request)
{
	char *text;
	unsigned int status = api_answer(settings, path, request->body, request->length, &text);

	if (status != MHD_HTTP_OK)
		output_warn("%s: %s", path, text);
	_exit(dprintf(ANSWER, "%u %s", status, text) < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* What Docker's last run has lost at its end. In the second of its start it may get addresses. */
static void give_back_lost(const struct settings *settings, struct cni_error *err)
{
	if (reconcile_lost(settings, time(NULL) - 1, DOCKER_ROUNDS, err))
		cni_error_wrap(err, "`cni-ipam reconcile` is to be called by hand");
}

/* Whatever fails there fails with the requests, too, or is warned of: a daemon that ends takes
 * systemd's socket with it. */
static void start_beside(const struct settings *settings,
			 void (*job)(const struct settings *, struct cni_error *))
{
	cleanup_error struct cni_error problem = {0};
	pid_t daemon = getpid();

	if (fork())
		return;
	become_worker(daemon, -1);
	job(settings, &problem);
	if (cni_error_is_set(&problem))
		output_warn("%s", cni_error_message(&problem));
	_exit(EXIT_SUCCESS);
}

static enum MHD_Result start_worker(const struct settings *settings, const char *path,
				    struct request *request)
{
	pid_t daemon = getpid();

	request->answer = memfd_create("answer", MFD_CLOEXEC);
	request->worker = request->answer < 0 ? -1 : fork();
	if (request->worker < 0)
		return reply(request->connection, MHD_HTTP_INTERNAL_SERVER_ERROR,
			     api_error_text("cannot start a process for the request"));
	if (!request->worker) {
		become_worker(daemon, request->answer);
		work(settings, path, request);
	}
	if (!strcmp(path, API_ACTIVATE))
		start_beside(settings, give_back_lost);
	request->next = pending;
	pending = request;
	MHD_suspend_connection(request->connection);
	return MHD_YES;
}

static enum MHD_Result send_answer(const struct request *request)
{
	cleanup_error struct cni_error problem = {0};
	cleanup_free char *text = NULL;
	unsigned long status;
	size_t length;
	char *end;

	lseek(request->answer, 0, SEEK_SET);
	text = cni_read_all(request->answer, CNI_INPUT_LIMIT, "the answer", &length, &problem);
	status = text ? strtoul(text, &end, 10) : 0;
	if (!status)
		return reply(request->connection, MHD_HTTP_INTERNAL_SERVER_ERROR,
			     api_error_text("the process for the request was killed: try again"));
	return reply(request->connection, (unsigned int)status, or_exit(strdup(end + 1)));
}

/* libmicrohttpd calls it with the headers, with each part of the body, at the end, and when the
 * connection is resumed. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection,
				  const char *path, const char *method, const char *version,
				  const char *data, size_t *size, void **context_of_request)
{
	struct request *request = *context_of_request;

	if (!request) {
		request = *context_of_request = or_exit(calloc(1, sizeof(*request)));
		*request = (struct request){.connection = connection, .answer = -1};
		return MHD_YES;
	}
	if (*size) {
		append(request, data, *size);
		*size = 0;
		return MHD_YES;
	}
	if (strcmp(method, MHD_HTTP_METHOD_POST))
		return reply(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
			     api_error_text("Docker's plugin API knows POST only"));
	if (request->too_long)
		return reply(connection, MHD_HTTP_CONTENT_TOO_LARGE,
			     api_error_text("the request is longer than 64 KiB"));
	return request->answered ? send_answer(request) : start_worker(context, path, request);
}

static void on_completed(void *context, struct MHD_Connection *connection,
			 void **context_of_request, enum MHD_RequestTerminationCode how)
{
	struct request *request = *context_of_request;

	if (!request)
		return;
	if (request->answer >= 0)
		close(request->answer);
	free(request->body);
	free(request);
	*context_of_request = NULL;
}

static int catch_signals(struct cni_error *err)
{
	const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_NOCLDSTOP};

	if (pipe2(signal_pipe, O_CLOEXEC | O_NONBLOCK))
		return cni_error_set(err, CNI_ERROR_IO, "cannot make a pipe: %s", strerror(errno));
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGCHLD, &action, NULL);
	return 0;
}

/* The connections of workers that have ended go on. */
static void reap(void)
{
	char bytes[CONNECTIONS];
	pid_t worker;

	while (read(signal_pipe[0], bytes, sizeof(bytes)) > 0)
		;
	while ((worker = waitpid(-1, NULL, WNOHANG)) > 0) {
		struct request **link = &pending, *request;

		while (*link && (*link)->worker != worker)
			link = &(*link)->next;
		request = *link;
		if (!request)
			continue;
		*link = request->next;
		request->answered = true;
		MHD_resume_connection(request->connection);
	}
}

static void wait_for_events(struct MHD_Daemon *daemon, struct pollfd events[2], int limit)
{
	MHD_UNSIGNED_LONG_LONG timeout;

	if (MHD_get_timeout(daemon, &timeout) == MHD_YES && timeout < (unsigned int)limit)
		limit = (int)timeout;
	poll(events, 2, limit);
	reap();
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

	while (!ends) {
		if (MHD_run(daemon) != MHD_YES)
			return cni_error_set(err, CNI_ERROR_IO,
					     "cannot serve any longer: libmicrohttpd fails");
		wait_for_events(daemon, events, (int)SILENCE * MS_PER_SECOND);
	}
	/* Requests that were read are answered. Who comes later waits for the next daemon, if
	 * systemd has the socket. */
	MHD_quiesce_daemon(daemon);
	for (int i = 0; pending || (i < LAST_ROUNDS && connections(daemon)); i += !pending) {
		MHD_run(daemon);
		wait_for_events(daemon, events, MS_PER_SECOND / LAST_ROUNDS);
	}
	return 0;
}

static void repair_subnet(const struct settings *settings, const char *text, struct cni_error *err)
{
	cleanup_state struct state state = STATE_NONE;
	struct cni_error problem = {0};
	struct prefix subnet;

	prefix_parse(text, &subnet);
	if (!state_open(&state, settings, &subnet, &problem) && !address_repair(&state, &problem))
		return;
	cni_error_wrap(&problem, "subnet %s", text);
	cni_error_join(err, &problem);
}

/* What a killed daemon has left, as the next request may come late. */
static void repair(const struct settings *settings, struct cni_error *err)
{
	cleanup_json json_t *subnets = state_subnets(settings, err);
	const json_t *subnet;
	size_t index;

	json_array_foreach (subnets, index, subnet)
		repair_subnet(settings, json_string_value(subnet), err);
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

/* Each may need a file more, for the answer of its worker. Who comes later waits to be accepted. */
static unsigned int connection_limit(void)
{
	struct rlimit files = {0};
	rlim_t possible;

	getrlimit(RLIMIT_NOFILE, &files);
	possible = files.rlim_cur > OTHER_FILES + 2 ? (files.rlim_cur - OTHER_FILES) / 2 : 1;
	return possible < CONNECTIONS ? (unsigned int)possible : CONNECTIONS;
}

/* Answers requests, each by a process, until SIGTERM or SIGINT; those that were read are answered
 * then. The driver is named after the socket. CNI_ERROR_IO, and what making
 * the socket sets. */
static int server_run(struct settings *settings, struct cni_error *err)
{
	int passed = take_passed(settings, err), fd = passed, failed;
	struct MHD_Daemon *daemon;

	if (cni_error_is_set(err))
		return -1;
	if (passed < 0)
		fd = make_socket(settings, err);
	if (fd < 0 || catch_signals(err))
		return -1;
	start_beside(settings, repair);
	daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
				  on_request, settings, MHD_OPTION_LISTEN_SOCKET, fd,
				  MHD_OPTION_CONNECTION_LIMIT, connection_limit(),
				  MHD_OPTION_CONNECTION_TIMEOUT, SILENCE,
				  MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL, MHD_OPTION_END);
	failed = daemon ? serve(daemon, err)
			: cni_error_set(err, CNI_ERROR_IO,
					"cannot start the HTTP server (libmicrohttpd)");
	if (passed < 0)
		unlink(settings->socket);
	if (daemon)
		MHD_stop_daemon(daemon);
	return failed;
}

static const char serve_help[] =
	"usage: cni-ipam [OPTION]...\n"
	"       cni-ipam reconcile [OPTION]...\n\n"
	"A remote IPAM driver of Docker: `docker network create --ipam-driver cni-ipam` has\n"
	"addresses given by a CNI plugin. A --subnet that is a range of a CNI network in\n"
	"NETCONFPATH (default: /etc/cni/net.d) shares that network's addresses; --ipam-opt\n"
	"network=NAME says which network is meant.\n\n";

static const char reconcile_help[] =
	"usage: cni-ipam reconcile [OPTION]...\n\n"
	"Compares with what Docker has, prints the differences, and gives back what no network or\n"
	"container of Docker has. What Docker has and cni-ipam lacks is taken over from files of\n"
	"host-local, or asked for.\n\n";

static int run_command_line(int argc, char **argv, struct cni_error *err)
{
	bool reconciles = argc > 1 && !strcmp(argv[1], "reconcile");
	unsigned int set = reconciles ? SETTINGS_RECONCILE : SETTINGS_SERVE;
	struct settings settings = {0};
	int failed;

	if (argc == 2 && !strcmp(argv[1], "--version")) {
		output_text("cni-ipam " PROGRAM_VERSION "\n");
		return output_flush(err);
	}
	failed = settings_parse(&settings, argc - reconciles, argv + reconciles, set, err);
	if (!failed && settings.help) {
		output_text("%s", reconciles ? reconcile_help : serve_help);
		settings_print_help(set);
		failed = output_flush(err);
	} else if (!failed) {
		failed = reconciles ? reconcile(&settings, err) : server_run(&settings, err);
	}
	settings_release(&settings);
	return failed;
}

int main(int argc, char **argv)
{
	return output_main(argc, argv, run_command_line, output_error);
}
