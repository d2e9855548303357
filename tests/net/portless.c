/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* portless.c - packets of a protocol without ports (GRE, ESP, ...), sent and answered. */
#include <poll.h>
#include <unistd.h>

#include "sockets.h"

#define TEXT_SIZE 256
#define PACKET_SIZE 65536

const char tool_usage[] =
	"portless serve PROTOCOL --background       answers each packet: its size and its source\n"
	"portless ask PROTOCOL ADDRESS [SIZE]       sends one, prints the answer, refused or "
	"timeout\n"
	"PROTOCOL: its number\n";

static int open_socket(int family, int protocol)
{
	int fd = socket(family, SOCK_RAW | SOCK_CLOEXEC, protocol);

	if (fd < 0)
		die("raw socket");
	return fd;
}

/* A raw IPv4 socket receives the IP header too. */
static size_t header_size(int family, const uint8_t *packet)
{
	return family == AF_INET ? (packet[0] & 15u) * 4u : 0;
}

/* The answer begins with a GRE header that conntrack takes for one: version 0, no flags. */
#define GRE_HEADER 8

static void answer(int fd, int family)
{
	static uint8_t packet[PACKET_SIZE];
	char text[TEXT_SIZE] = "", client[INET6_ADDRSTRLEN];
	union socket_address from;
	socklen_t size = sizeof(from);
	ssize_t got = recvfrom(fd, packet, sizeof(packet), 0, &from.any, &size);

	if (got < 0)
		return;
	inet_ntop(family,
		  family == AF_INET ? (void *)&from.ipv4.sin_addr : (void *)&from.ipv6.sin6_addr,
		  client, sizeof(client));
	snprintf(text + GRE_HEADER, sizeof(text) - GRE_HEADER, "size=%zu client=%s",
		 (size_t)got - header_size(family, packet), client);
	sendto(fd, text, GRE_HEADER + strlen(text + GRE_HEADER), 0, &from.any, size);
}

static _Noreturn void command_serve(int protocol)
{
	static const int families[] = {AF_INET, AF_INET6};
	struct pollfd readable[2];

	for (int i = 0; i < 2; i++)
		readable[i] =
			(struct pollfd){.fd = open_socket(families[i], protocol), .events = POLLIN};
	if (daemon(1, 1))
		die("daemon");
	for (;;) {
		if (poll(readable, 2, -1) < 0)
			die("poll");
		for (int i = 0; i < 2; i++)
			if (readable[i].revents)
				answer(readable[i].fd, families[i]);
	}
}

/* The socket is connected, so that it receives from the server only. */
static void command_ask(int protocol, const struct sockaddr_in6 *server, size_t size)
{
	static uint8_t packet[PACKET_SIZE];
	int family = is_ipv4(server) ? AF_INET : AF_INET6, fd = open_socket(family, protocol);
	struct pollfd readable = {.fd = fd, .events = POLLIN};
	union socket_address to;
	size_t header;
	ssize_t got;

	if (connect(fd, &to.any, address_for(&to, family, server)) ||
	    send(fd, packet, size, 0) != (ssize_t)size)
		die("sending");
	if (poll(&readable, 1, patience(1000)) < 1) {
		puts("timeout");
		return;
	}
	got = recv(fd, packet, sizeof(packet), 0);
	if (got < 0) { /* an ICMP error */
		puts("refused");
		return;
	}
	header = header_size(family, packet) + GRE_HEADER;
	printf("%.*s\n", (int)((size_t)got - header), (const char *)packet + header);
}

int main(int argc, char **argv)
{
	struct sockaddr_in6 server;

	if (argc == 4 && !strcmp(argv[1], "serve"))
		command_serve(parse_number(argv[2], 0, 255));
	if (argc < 4 || strcmp(argv[1], "ask") != 0)
		die_usage();
	server = parse_address(argv[3], 0);
	command_ask(parse_number(argv[2], 0, 255), &server,
		    argc > 4 ? (size_t)parse_number(argv[4], 1, PACKET_SIZE - 1) : 40);
	return 0;
}
