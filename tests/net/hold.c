/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * hold.c - a process that binds ports of its own, in every way there is, and says what the
 * kernel thought of it.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <getopt.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tool.h"

const char tool_usage[] =
	"hold tcp|udp|sctp ADDRESS FIRST [LAST] [--mapped] [--both] [--reuse] [--bound]\n"
	"     [--connect ADDRESS,PORT] [--name NAME] [--argument TEXT] [--background]\n"
	"     binds to each of the ports, listens (TCP), prints the address and port it got, or\n"
	"     the error; then ends, or goes on in the background and prints its pid\n"
	"     ADDRESS: IPv4, with --mapped by an IPv6 socket; IPv6, with --both of both families\n"
	"     --reuse: with SO_REUSEADDR and SO_REUSEPORT; --bound: does not listen\n"
	"     --connect: to there, once it is bound; --name: what it is called in /proc\n";

struct options {
	const char *name;
	const char *peer;
	bool mapped;
	bool both;
	bool reuse;
	bool bound;
	bool background;
};

/* Of the family that the socket has. */
union socket_address {
	struct sockaddr any;
	struct sockaddr_in ipv4;
	struct sockaddr_in6 ipv6;
};

static socklen_t make_address(union socket_address *address, const char *text, int port,
			      const struct options *options)
{
	*address = (union socket_address){.ipv6 = parse_address(text, port)};
	if (!is_ipv4(&address->ipv6) || options->mapped)
		return sizeof(address->ipv6);
	address->ipv4 = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = address->ipv6.sin6_addr.s6_addr32[3],
	};
	return sizeof(address->ipv4);
}

static int open_socket(int family, const char *protocol, const struct options *options)
{
	int stream = strcmp(protocol, "udp") != 0, on = 1,
	    only = !options->both && !options->mapped;
	int number = strcmp(protocol, "sctp") == 0 ? IPPROTO_SCTP : 0;
	int fd = socket(family, stream ? SOCK_STREAM : SOCK_DGRAM, number);

	if (fd < 0)
		die("socket");
	if (options->reuse && (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
			       setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on))))
		die("SO_REUSEADDR");
	if (family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof(only)))
		die("IPV6_V6ONLY");
	return fd;
}

static int bind_socket(int fd, const union socket_address *address, socklen_t size,
		       const char *protocol, const struct options *options)
{
	union socket_address peer;
	char *text, *port;

	if (bind(fd, &address->any, size))
		return -1;
	if (options->peer) {
		text = strdup(options->peer);
		port = text ? strchr(text, ',') : NULL;
		if (!port)
			die_usage();
		*port++ = '\0';
		size = make_address(&peer, text, parse_number(port, 1, 65535), options);
		free(text);
		return connect(fd, &peer.any, size);
	}
	return strcmp(protocol, "udp") == 0 || options->bound ? 0 : listen(fd, 16);
}

static void print_bound(int fd)
{
	union socket_address bound;
	socklen_t size = sizeof(bound);
	char text[INET6_ADDRSTRLEN];

	if (getsockname(fd, &bound.any, &size))
		die("getsockname");
	if (bound.any.sa_family == AF_INET)
		inet_ntop(AF_INET, &bound.ipv4.sin_addr, text, sizeof(text));
	else
		inet_ntop(AF_INET6, &bound.ipv6.sin6_addr, text, sizeof(text));
	printf("%s %u\n", text, ntohs(bound.ipv6.sin6_port));
}

static int hold(const char *protocol, const char *address, int port, const struct options *options)
{
	union socket_address local;
	socklen_t size = make_address(&local, address, port, options);
	int fd = open_socket(local.any.sa_family, protocol, options);

	if (bind_socket(fd, &local, size, protocol, options)) {
		printf("%s\n", strerrorname_np(errno));
		return 1;
	}
	print_bound(fd);
	return 0;
}

static void parse_options(int argc, char **argv, struct options *options)
{
	static const struct option names[] = {
		{"mapped", no_argument, NULL, 'm'},
		{"both", no_argument, NULL, 'b'},
		{"reuse", no_argument, NULL, 'r'},
		{"bound", no_argument, NULL, 'B'},
		{"background", no_argument, NULL, 'd'},
		{"connect", required_argument, NULL, 'c'},
		{"name", required_argument, NULL, 'n'},
		{"argument", required_argument, NULL, 'a'},
		{NULL, 0, NULL, 0},
	};
	int letter;

	while ((letter = getopt_long(argc, argv, "", names, NULL)) != -1) {
		options->mapped |= letter == 'm';
		options->both |= letter == 'b';
		options->reuse |= letter == 'r';
		options->bound |= letter == 'B';
		options->background |= letter == 'd';
		if (letter == 'c')
			options->peer = optarg;
		else if (letter == 'n')
			options->name = optarg;
		else if (letter == '?')
			die_usage();
	}
}

static void go_on(void)
{
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child < 0)
		die("fork");
	if (child) {
		printf("pid %d\n", (int)child);
		return;
	}
	setsid();
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	struct options options = {0};
	struct rlimit limit;
	int first, last;

	parse_options(argc, argv, &options);
	if (argc - optind < 3)
		die_usage();
	argv += optind;
	first = parse_number(argv[2], 0, 65535);
	last = argc - optind > 3 ? parse_number(argv[3], first, 65535) : first;
	if (options.name)
		prctl(PR_SET_NAME, options.name);
	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	for (int port = first; port <= last; port++)
		if (hold(argv[0], argv[1], port, &options))
			return 1;
	if (options.background)
		go_on();
	return 0;
}
