/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * hold.c - a process that binds ports, with every kind of socket, and prints the kernel's result.
 */
#include <sys/prctl.h>

#include "sockets.h"

const char tool_usage[] =
	"hold tcp|udp|sctp ADDRESS FIRST [LAST] [--mapped] [--both] [--reuse] [--bound]\n"
	"     [--connect ADDRESS,PORT] [--name NAME] [--argument TEXT] [--background]\n"
	"     binds each of the ports, listens (TCP), and prints the bound address and port,\n"
	"     or the error; then exits, or stays in the background and prints its pid\n"
	"     ADDRESS: IPv4, with --mapped on an IPv6 socket; IPv6, with --both for both families\n"
	"     --reuse: with SO_REUSEADDR and SO_REUSEPORT; --bound: does not listen\n"
	"     --connect: connects after bind; --name: the process's name in /proc\n"
	"     --argument: only shows up in /proc/PID/cmdline\n";

static const char *name, *connects_to, *argument;
static bool mapped, both, reuse, bound, background;

static socklen_t make_address(union socket_address *address, const char *text, int port)
{
	struct sockaddr_in6 parsed = parse_address(text, port);
	bool ipv4 = is_ipv4(&parsed) && !mapped;

	return address_for(address, ipv4 ? AF_INET : AF_INET6, &parsed);
}

static int open_socket(int family, const char *protocol)
{
	int stream = strcmp(protocol, "udp") != 0;
	int number = strcmp(protocol, "sctp") == 0 ? IPPROTO_SCTP : 0;
	int fd = socket(family, stream ? SOCK_STREAM : SOCK_DGRAM, number);

	if (fd < 0)
		die("socket");
	if (reuse) {
		set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
		set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1);
	}
	if (family == AF_INET6)
		set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, !both && !mapped);
	return fd;
}

static int bind_and_use(int fd, const union socket_address *address, socklen_t size,
			const char *protocol)
{
	union socket_address peer;
	char *text, *port;

	if (bind(fd, &address->any, size))
		return -1;
	if (connects_to) {
		text = strdup(connects_to);
		port = text ? strchr(text, ',') : NULL;
		if (!port)
			die_usage();
		*port++ = '\0';
		size = make_address(&peer, text, parse_port(port));
		free(text);
		return connect(fd, &peer.any, size);
	}
	return strcmp(protocol, "udp") == 0 || bound ? 0 : listen(fd, 16);
}

static void print_bound(int fd)
{
	union socket_address own;
	socklen_t size = sizeof(own);
	char text[INET6_ADDRSTRLEN];

	if (getsockname(fd, &own.any, &size))
		die("getsockname");
	if (own.any.sa_family == AF_INET)
		inet_ntop(AF_INET, &own.ipv4.sin_addr, text, sizeof(text));
	else
		inet_ntop(AF_INET6, &own.ipv6.sin6_addr, text, sizeof(text));
	printf("%s %u\n", text, ntohs(own.ipv6.sin6_port));
}

static int hold(const char *protocol, const char *address, int port)
{
	union socket_address local;
	socklen_t size = make_address(&local, address, port);
	int fd = open_socket(local.any.sa_family, protocol);

	if (bind_and_use(fd, &local, size, protocol)) {
		printf("%s\n", strerrorname_np(errno));
		return 1;
	}
	print_bound(fd);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct tool_option options[] = {
		{"mapped", .flag = &mapped},
		{"both", .flag = &both},
		{"reuse", .flag = &reuse},
		{"bound", .flag = &bound},
		{"background", .flag = &background},
		{"connect", .text = &connects_to},
		{"name", .text = &name},
		{"argument", .text = &argument},
		{NULL},
	};
	int first, last;

	parse_options(argc, argv, options);
	if (argc - optind < 3)
		die_usage();
	argv += optind;
	first = parse_number(argv[2], 0, 65535);
	last = argc - optind > 3 ? parse_number(argv[3], first, 65535) : first;
	if (name)
		prctl(PR_SET_NAME, name);
	raise_file_limit();
	for (int port = first; port <= last; port++)
		if (hold(argv[0], argv[1], port))
			return 1;
	if (!background)
		return 0;
	go_on_as_child();
	for (;;)
		pause();
}
