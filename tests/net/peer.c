/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * peer.c - the two ends of the connections that the network tests make: a server that reports
 * which client address it sees, and a client that reports which server answered.
 */
#include <fcntl.h>
#include <sys/epoll.h>

#include "sockets.h"

#define LINE_SIZE 512

enum exit_code { EXIT_TIMEOUT = 1, EXIT_REFUSED = 3, EXIT_BROKEN = 4 };

static const char *name = "peer", *source = "any";
static int source_port, count = 1, interval, timeout = 1000, ttl, tos, priority;
static bool background, on_demand, reset, connected, keep_going, ip_options;

const char tool_usage[] =
	"peer serve tcp|udp|both|sctp ADDRESS PORT [--name NAME] [--background]\n"
	"     answers each line or datagram with: name=... client=... local=...\n"
	"     ADDRESS may be any\n"
	"peer ask tcp|udp|both|sctp ADDRESS PORT [--from ADDRESS] [--source-port N] [--count N]\n"
	"     [--interval MS] [--timeout MS] [--on-demand] [--keep-going] [--reset] [--ttl N]\n"
	"     [--ip-options] [--tos N] [--priority N]\n"
	"     sends a request and prints the answer and from=..., or timeout, refused, closed\n"
	"     both: by TCP, and if that is answered by UDP, a line each\n"
	"     --on-demand: one request for each line of standard input, over one socket, until\n"
	"     \"bye\"\n"
	"     --connected: the UDP socket is connected and receives from the server only\n"
	"     --keep-going: a request without an answer does not end it\n"
	"     --reset: closes the connection by RST\n"
	"     --ip-options: each packet has four no-operation options; IPv4\n"
	"     --tos: IPv4's type of service; --priority: the socket's priority, SO_PRIORITY\n";

/* `tcp` below also means SCTP's streams, which behave alike where the kernel has them. */
static int stream_protocol = IPPROTO_TCP;

/* What a server waits for: connections, datagrams, and lines of each connection. One process does
 * it, because starting processes is most of what a short test costs. */
struct server {
	int events, listener, datagrams; /* -1: none */
	int port;
};

static struct sockaddr_in6 parse_any_address(const char *text, int port)
{
	return strcmp(text, "any") == 0 ? any_address(port) : parse_address(text, port);
}

static int open_socket(bool tcp)
{
	int fd = tcp ? open_dual_socket(SOCK_STREAM, stream_protocol)
		     : open_dual_socket(SOCK_DGRAM, 0);

	set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	return fd;
}

static void format_answer(char *line, const struct sockaddr_in6 *client,
			  const struct sockaddr_in6 *local)
{
	char client_text[ENDPOINT_SIZE], local_text[ENDPOINT_SIZE];

	snprintf(line, LINE_SIZE, "name=%s client=%s local=%s\n", name,
		 format_address(client, client_text), format_address(local, local_text));
}

/* False: the connection is over. */
static bool serve_line(int fd)
{
	struct sockaddr_in6 client, local;
	socklen_t size = sizeof(client), local_size = sizeof(local);
	char line[LINE_SIZE], buffer[LINE_SIZE];
	ssize_t got;

	if (getpeername(fd, (struct sockaddr *)&client, &size) ||
	    getsockname(fd, (struct sockaddr *)&local, &local_size))
		return false;
	got = read(fd, buffer, sizeof(buffer));
	if (got <= 0)
		return false;
	if (!memchr(buffer, '\n', got))
		return true;
	format_answer(line, &client, &local);
	return send(fd, line, strlen(line), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

static void wait_for(const struct server *server, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	if (epoll_ctl(server->events, EPOLL_CTL_ADD, fd, &event))
		die("epoll_ctl");
}

static void accept_connection(const struct server *server)
{
	int connection = accept(server->listener, NULL, NULL);

	if (connection >= 0)
		wait_for(server, connection);
}

/* The answer has the address that the datagram was sent to as its source. */
static void serve_datagram(int fd, int port)
{
	char buffer[LINE_SIZE], line[LINE_SIZE];
	struct sockaddr_in6 client, local = any_address(port);

	if (receive_with_addresses(fd, buffer, sizeof(buffer), &client, &local.sin6_addr) < 0)
		return;
	format_answer(line, &client, &local);
	send_with_source(fd, line, strlen(line), &local.sin6_addr, &client);
}

static int server_socket(const struct server *server, bool tcp, const char *address)
{
	struct sockaddr_in6 local = parse_any_address(address, server->port);
	int fd = open_socket(tcp);

	/* What was there may have gone: a datagram with a wrong checksum, a connection. */
	if (fcntl(fd, F_SETFL, O_NONBLOCK))
		die("O_NONBLOCK");
	if (!tcp)
		set_option(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
	bind_socket(fd, &local);
	if (tcp && listen(fd, 512))
		die("listen");
	wait_for(server, fd);
	return fd;
}

static _Noreturn void serve(const struct server *server)
{
	struct epoll_event event;

	for (;;) {
		if (epoll_wait(server->events, &event, 1, -1) != 1)
			continue;
		if (event.data.fd == server->listener)
			accept_connection(server);
		else if (event.data.fd == server->datagrams)
			serve_datagram(event.data.fd, server->port);
		else if (!serve_line(event.data.fd))
			close(event.data.fd);
	}
}

static _Noreturn void command_serve(bool tcp, bool udp, const char *address, int port)
{
	struct server server = {.listener = -1, .datagrams = -1, .port = port};

	raise_file_limit();
	server.events = epoll_create1(EPOLL_CLOEXEC);
	if (server.events < 0)
		die("epoll_create1");
	if (tcp)
		server.listener = server_socket(&server, true, address);
	if (udp)
		server.datagrams = server_socket(&server, false, address);
	if (background && daemon(1, 0))
		die("daemon");
	serve(&server);
}

static int report_errno(void)
{
	if (errno == ECONNREFUSED) {
		puts("refused");
		return EXIT_REFUSED;
	}
	printf("broken: %s\n", strerror(errno));
	return EXIT_BROKEN;
}

static int connect_within(int fd, const struct sockaddr_in6 *address)
{
	limit_time(fd, SO_SNDTIMEO, timeout);
	if (connect_socket(fd, address) == 0)
		return 0;
	if (errno == EINPROGRESS || errno == EAGAIN || errno == ETIMEDOUT) {
		puts("timeout");
		return EXIT_TIMEOUT;
	}
	return report_errno();
}

static int report_failed_read(ssize_t got)
{
	if (got == 0) {
		puts("closed");
		return EXIT_BROKEN;
	}
	return report_errno();
}

/* A UDP socket stays unconnected without --connected, so that it also receives an answer from
 * another address. */
static int ask_once(int fd, bool tcp, const struct sockaddr_in6 *server)
{
	bool anybody = !tcp && !connected;
	static const char request[] = "who?\n";
	char line[LINE_SIZE], from_text[ENDPOINT_SIZE];
	struct sockaddr_in6 from = *server;
	socklen_t size = sizeof(from);
	ssize_t got;

	if (sendto(fd, request, sizeof(request) - 1, MSG_NOSIGNAL,
		   anybody ? (const struct sockaddr *)server : NULL,
		   anybody ? sizeof(*server) : 0) < 0)
		return report_failed_read(-1);
	if (!has_received(fd, timeout)) {
		puts("timeout");
		return EXIT_TIMEOUT;
	}
	got = recvfrom(fd, line, sizeof(line) - 1, 0, tcp ? NULL : (struct sockaddr *)&from,
		       tcp ? NULL : &size);
	if (got <= 0)
		return report_failed_read(got);
	line[got] = '\0';
	line[strcspn(line, "\n")] = '\0';
	printf("%s from=%s\n", line, format_address(&from, from_text));
	return 0;
}

/* The kernel reports the destroyed socket by two errors; one of them may still be pending. */
static int ask_on_demand(int fd, bool tcp, const struct sockaddr_in6 *server)
{
	char line[LINE_SIZE];
	int result = 0;

	while (fgets(line, sizeof(line), stdin) && strcmp(line, "bye\n") != 0) {
		result = ask_once(fd, tcp, server);
		if (tcp && result >= EXIT_BROKEN)
			return result;
	}
	return result;
}

static int ask_counted(int fd, bool tcp, const struct sockaddr_in6 *server)
{
	int result = 0;

	for (int i = 0; i < count; i++) {
		int code;

		if (i)
			sleep_milliseconds(interval);
		code = ask_once(fd, tcp, server);
		if (code && !keep_going)
			return code;
		if (code)
			result = code;
	}
	return result;
}

/* IP_TTL counts for IPv4 packets of an IPv6 socket too. A UDP socket learns of an exceeded hop
 * limit only if it receives every error. */
static void limit_hops(int fd, int hops)
{
	set_option(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, hops);
	set_option(fd, IPPROTO_IP, IP_TTL, hops);
	set_option(fd, IPPROTO_IPV6, IPV6_RECVERR, 1);
	set_option(fd, IPPROTO_IP, IP_RECVERR, 1);
}

/* Four times "no operation" (RFC 791 3.1) */
static void add_ip_options(int fd)
{
	static const uint8_t options[] = {1, 1, 1, 1};

	if (setsockopt(fd, IPPROTO_IP, IP_OPTIONS, options, sizeof(options)))
		die("IP_OPTIONS");
}

static void set_priorities(int fd)
{
	if (tos)
		set_option(fd, IPPROTO_IP, IP_TOS, tos);
	if (priority)
		set_option(fd, SOL_SOCKET, SO_PRIORITY, priority);
}

static int command_ask(bool tcp, const char *address, int port)
{
	struct sockaddr_in6 server = parse_any_address(address, port);
	struct sockaddr_in6 local = parse_any_address(source, source_port);
	int fd = open_socket(tcp), result;

	setvbuf(stdout, NULL, _IOLBF, 0);
	bind_socket(fd, &local);
	if (ttl)
		limit_hops(fd, ttl);
	if (ip_options)
		add_ip_options(fd);
	set_priorities(fd);
	if (tcp || connected) {
		result = connect_within(fd, &server);
		if (result)
			return result;
	}
	if (on_demand)
		result = ask_on_demand(fd, tcp, &server);
	else
		result = ask_counted(fd, tcp, &server);
	if (reset)
		reset_on_close(fd);
	close(fd);
	return result;
}

int main(int argc, char **argv)
{
	static const struct tool_option options[] = {
		{"name", .text = &name},
		{"from", .text = &source},
		{"source-port", .number = &source_port, .high = 65535},
		{"count", .number = &count, .low = 1, .high = 1000000},
		{"interval", .number = &interval, .high = 100000},
		{"timeout", .number = &timeout, .low = 1, .high = 100000},
		{"ttl", .number = &ttl, .low = 1, .high = 255},
		{"tos", .number = &tos, .high = 255},
		{"priority", .number = &priority, .high = 7},
		{"background", .flag = &background},
		{"on-demand", .flag = &on_demand},
		{"keep-going", .flag = &keep_going},
		{"reset", .flag = &reset},
		{"connected", .flag = &connected},
		{"ip-options", .flag = &ip_options},
		{NULL},
	};
	bool both, tcp;
	int result;

	parse_options(argc, argv, options);
	timeout = patience(timeout);
	argv += optind;
	if (argc - optind != 4)
		die_usage();
	both = strcmp(argv[1], "both") == 0;
	if (strcmp(argv[1], "sctp") == 0)
		stream_protocol = IPPROTO_SCTP;
	else if (!both && strcmp(argv[1], "tcp") != 0 && strcmp(argv[1], "udp") != 0)
		die_usage();
	tcp = strcmp(argv[1], "udp") != 0;
	if (strcmp(argv[0], "serve") == 0)
		command_serve(tcp, both || !tcp, argv[2], parse_port(argv[3]));
	if (strcmp(argv[0], "ask") != 0)
		die_usage();
	result = command_ask(tcp, argv[2], parse_port(argv[3]));
	if (both && !result)
		result = command_ask(false, argv[2], parse_port(argv[3]));
	return result;
}
