/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sctp.c - as much SCTP (RFC 9260) as a NAT sees, over raw sockets, for kernels without SCTP: a
 * client's INIT, and a server's INIT ACK that reports the client address. Both ends check the
 * CRC32c of what they receive. The output is that of peer.c, which is used where the kernel has
 * SCTP.
 */
#include <netinet/ip.h>
#include <stddef.h>

#include "../sums.h"
#include "sockets.h"

#define PACKET_SIZE 65536
#define TEXT_SIZE 512
#define CHUNK_INIT 1
#define CHUNK_INIT_ACK 2
#define PARAMETER_STATE_COOKIE 7

enum exit_code { EXIT_TIMEOUT = 1, EXIT_BROKEN = 4 };

const char tool_usage[] =
	"sctp serve sctp any PORT [--name NAME] [--background]\n"
	"     answers each INIT at its own length with: name=... client=... local=...\n"
	"sctp ask sctp ADDRESS PORT [--source-port N] [--count N] [--size BYTES] [--timeout MS]\n"
	"     [--damaged]\n"
	"     prints each answer and from=..., or timeout\n"
	"     --size: of the SCTP packet; --damaged: with a wrong CRC32c\n";

static const char *name = "sctp";
static int source_port, count = 1, packet_size = 100, timeout = 1000;
static bool background, damaged;

struct common_header {
	uint16_t source;
	uint16_t destination;
	uint32_t verification_tag;
	uint32_t checksum; /* little endian */
};

/* INIT or INIT ACK with one parameter, which has the text. */
struct init {
	struct common_header common;
	uint8_t type;
	uint8_t flags;
	uint16_t length;
	uint32_t initiate_tag;
	uint32_t window;
	uint16_t streams_out;
	uint16_t streams_in;
	uint32_t first_number;
	uint16_t parameter_type;
	uint16_t parameter_length;
	char text[];
};

struct message {
	struct sockaddr_in6 from; /* IPv4 as v4-mapped */
	struct sockaddr_in6 to;
	size_t size;
	union {
		struct init init;
		uint8_t bytes[PACKET_SIZE];
	};
};

/* The checksum field, after 8 bytes, counts as 0. */
static uint32_t crc32c(const struct message *message)
{
	uint32_t crc = crc32c_add(~0u, message->bytes, 8, 4);

	return htole32(~crc32c_add(crc, message->bytes + 12, message->size - 12, 0));
}

static int open_socket(int family)
{
	int fd = open_raw_socket(family, IPPROTO_SCTP);

	set_option(fd, SOL_SOCKET, SO_RCVBUF, 1 << 20);
	set_option(fd, SOL_SOCKET, SO_SNDBUF, 1 << 20);
	if (family == AF_INET6)
		set_option(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
	return fd;
}

/* A raw IPv4 socket receives the IP header too. */
static bool receive_ipv4(int fd, struct message *message)
{
	ssize_t got = recv(fd, message->bytes, sizeof(message->bytes), 0);
	struct iphdr ip;
	size_t header;

	if (got < (ssize_t)sizeof(ip))
		return false;
	memcpy(&ip, message->bytes, sizeof(ip));
	header = ip.ihl * 4;
	map_ipv4(message->from.sin6_addr.s6_addr, ip.saddr);
	map_ipv4(message->to.sin6_addr.s6_addr, ip.daddr);
	message->size = (size_t)got - header;
	memmove(message->bytes, message->bytes + header, message->size);
	return true;
}

static bool receive_ipv6(int fd, struct message *message)
{
	ssize_t got = receive_with_addresses(fd, message->bytes, sizeof(message->bytes),
					     &message->from, &message->to.sin6_addr);

	if (got < 0)
		return false;
	message->size = (size_t)got;
	return true;
}

/* A raw socket receives every SCTP packet; this returns whether it is an intact one of this type
 * to this port. */
static bool receive(int fd, int family, int type, int port, struct message *message)
{
	if (family == AF_INET ? !receive_ipv4(fd, message) : !receive_ipv6(fd, message))
		return false;
	if (message->size < sizeof(struct init) || message->init.type != type ||
	    ntohs(message->init.common.destination) != port)
		return false;
	message->from.sin6_port = message->init.common.source;
	message->to.sin6_port = message->init.common.destination;
	if (message->init.common.checksum == crc32c(message))
		return true;
	fprintf(stderr, "sctp: wrong CRC32c in %zu bytes to port %d\n", message->size, port);
	return false;
}

static void send_message(int fd, struct message *message)
{
	struct sockaddr_in6 portless = message->to;
	union socket_address to;
	socklen_t size;
	ssize_t sent;

	portless.sin6_port = 0; /* a raw socket's "port" is the protocol, or 0 */
	size = address_for(&to, is_ipv4(&message->to) ? AF_INET : AF_INET6, &portless);
	message->init.common.source = message->from.sin6_port;
	message->init.common.destination = message->to.sin6_port;
	message->init.length = htons(message->size - sizeof(struct common_header));
	message->init.parameter_length =
		htons(message->size - offsetof(struct init, parameter_type));
	message->init.common.checksum = crc32c(message) ^ damaged;
	sent = sendto(fd, message->bytes, message->size, 0, &to.any, size);
	if (sent != (ssize_t)message->size)
		fprintf(stderr, "sctp: sending %zu bytes: %s\n", message->size, strerror(errno));
}

static int server_port;

static void answer(int fd, int family)
{
	static struct message message;
	char client[ENDPOINT_SIZE], local[ENDPOINT_SIZE], text[TEXT_SIZE];
	struct sockaddr_in6 client_address;
	size_t room, length;

	if (!receive(fd, family, CHUNK_INIT, server_port, &message))
		return;
	client_address = message.from;
	room = message.size - sizeof(struct init);
	snprintf(text, sizeof(text), "name=%s client=%s local=%s", name,
		 format_address(&message.from, client), format_address(&message.to, local));
	length = strlen(text) + 1;
	memcpy(message.init.text, text, length);
	if (length > room)
		message.size = sizeof(struct init) + length;
	message.from = message.to;
	message.to = client_address;
	message.init.type = CHUNK_INIT_ACK;
	message.init.common.verification_tag = message.init.initiate_tag;
	send_message(fd, &message);
}

static int command_serve(char **operands)
{
	const int sockets[] = {open_socket(AF_INET), open_socket(AF_INET6)};

	server_port = parse_port(operands[2]);
	if (background && daemon(1, 1))
		die("daemon");
	serve_raw(sockets, answer);
}

static bool await_answer(int fd, int family, uint32_t tag, int port, struct message *message)
{
	long end = milliseconds_now() + patience(timeout), left;

	while ((left = end - milliseconds_now()) > 0) {
		if (has_received(fd, (int)left) &&
		    receive(fd, family, CHUNK_INIT_ACK, port, message) &&
		    message->init.common.verification_tag == tag)
			return true;
	}
	return false;
}

static int ask_once(int fd, int family, const struct sockaddr_in6 *server, int port)
{
	static struct message message;
	uint32_t tag = (uint32_t)random() | 1;
	char from[ENDPOINT_SIZE];

	memset(&message, 0, sizeof(message));
	message.to = *server;
	message.from.sin6_port = htons(port);
	message.size = (size_t)packet_size;
	message.init.type = CHUNK_INIT;
	message.init.initiate_tag = tag;
	message.init.parameter_type = htons(PARAMETER_STATE_COOKIE);
	for (size_t i = sizeof(struct init); i < message.size; i++)
		message.bytes[i] = (uint8_t)random();
	send_message(fd, &message);
	if (!await_answer(fd, family, tag, port, &message)) {
		puts("timeout");
		return EXIT_TIMEOUT;
	}
	if (message.size < (size_t)packet_size) {
		puts("broken: cut off");
		return EXIT_BROKEN;
	}
	printf("%s from=%s\n", message.init.text, format_address(&message.from, from));
	return 0;
}

static int command_ask(char **operands)
{
	struct sockaddr_in6 server = parse_address(operands[1], parse_port(operands[2]));
	int family = is_ipv4(&server) ? AF_INET : AF_INET6, fd = open_socket(family);
	int own, code = 0;

	srandom((unsigned int)(getpid() ^ milliseconds_now()));
	own = source_port ?: 1024 + (int)(random() % 64512);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 0; i < count && !code; i++)
		code = ask_once(fd, family, &server, own);
	return code;
}

int main(int argc, char **argv)
{
	static const struct tool_option options[] = {
		{"name", .text = &name},
		{"source-port", .number = &source_port, .low = 1, .high = 65535},
		{"count", .number = &count, .low = 1, .high = 100000},
		{"size", .number = &packet_size, .low = sizeof(struct init),
		 .high = PACKET_SIZE - 1},
		{"timeout", .number = &timeout, .low = 1, .high = 100000},
		{"background", .flag = &background},
		{"damaged", .flag = &damaged},
		{NULL},
	};
	static const struct tool_command commands[] = {
		{"serve", 3, 3, command_serve},
		{"ask", 3, 3, command_ask},
		{NULL},
	};

	parse_options(argc, argv, options);
	return run_command(argc - optind, argv + optind, commands);
}
