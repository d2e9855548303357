/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* portless.c - packets of a protocol without ports (GRE, ESP, ...), sent and answered. */
#include <poll.h>
#include <unistd.h>

#include "sockets.h"

#define TEXT_SIZE 256
#define PACKET_SIZE 65536

const char tool_usage[] =
	"portless serve PROTOCOL                    answers each packet: its size and its source\n"
	"portless ask PROTOCOL ADDRESS [SIZE]       sends one, prints the answer, refused or "
	"timeout\n"
	"PROTOCOL: its number\n";

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

static int command_serve(char **operands)
{
	int protocol = parse_number(operands[0], 0, 255);
	const int sockets[] = {open_raw_socket(AF_INET, protocol),
			       open_raw_socket(AF_INET6, protocol)};

	if (daemon(1, 1))
		die("daemon");
	serve_raw(sockets, answer);
}

/* The socket is connected, so that it receives from the server only. */
static int command_ask(char **operands)
{
	static uint8_t packet[PACKET_SIZE];
	struct sockaddr_in6 server = parse_address(operands[1], 0);
	size_t size = operands[2] ? (size_t)parse_number(operands[2], 1, PACKET_SIZE - 1) : 40;
	int family = is_ipv4(&server) ? AF_INET : AF_INET6;
	int fd = open_raw_socket(family, parse_number(operands[0], 0, 255));
	union socket_address to;
	size_t header;
	ssize_t got;

	if (connect(fd, &to.any, address_for(&to, family, &server)) ||
	    send(fd, packet, size, 0) != (ssize_t)size)
		die("sending");
	got = has_received(fd, patience(1000)) ? recv(fd, packet, sizeof(packet), 0) : 0;
	header = header_size(family, packet) + GRE_HEADER;
	if (got > 0)
		printf("%.*s\n", (int)((size_t)got - header), (const char *)packet + header);
	else
		puts(got ? "refused" : "timeout"); /* -1: an ICMP error */
	return 0;
}

int main(int argc, char **argv)
{
	static const struct tool_command commands[] = {
		{"serve", 1, 1, command_serve},
		{"ask", 2, 3, command_ask},
		{NULL},
	};

	return run_command(argc - 1, argv + 1, commands);
}
