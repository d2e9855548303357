/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * datagrams.c - UDP datagrams of up to 64 kB that are echoed and compared byte by byte. They are
 * fragmented by the IP stack, or here, in an order that no stack sends.
 */
#include <netinet/udp.h>
#include <sys/random.h>

#include "raw.h"
#include "sockets.h"

#define MAX_DATAGRAM 65508
#define FRAGMENT_HEADER 44
#define PIECE 1448 /* fits a frame of either family */

static const char *order, *interface, *destination_mac;
static int source_port, count = 1, timeout = 1000;
static bool background, pauses;

struct fragment_header {
	uint8_t next;
	uint8_t reserved;
	uint16_t offset;
	uint32_t identification;
};

const char tool_usage[] =
	"datagrams echo PORT [--background] [HOW]      sends back each datagram\n"
	"datagrams ask ADDRESS PORT SIZE [--source-port N] [--count N] [--timeout MS] [--pause]\n"
	"     [HOW]\n"
	"     sends datagrams of SIZE bytes, waits for each to come back, and prints whole,\n"
	"     differs or timeout\n"
	"     --pause: waits for a line of standard input after each first fragment\n"
	"HOW: --order forward|backward|twice|overlapping|first-lost --interface NAME\n"
	"     --destination-mac MAC; without it the IP stack fragments. With first-lost it does\n"
	"     not wait for an answer.\n";

/* The whole datagram, before it is fragmented. */
static size_t build_datagram(uint8_t *datagram, const struct sockaddr_in6 *source,
			     const struct sockaddr_in6 *destination, const uint8_t *payload,
			     size_t size)
{
	size_t whole = sizeof(struct udphdr) + size;
	struct udphdr header = {
		.source = source->sin6_port, .dest = destination->sin6_port, .len = htons(whole)};

	memcpy(datagram, &header, sizeof(header));
	memcpy(datagram + sizeof(header), payload, size);
	header.check = transport_checksum(source, destination, IPPROTO_UDP, datagram, whole);
	if (!header.check)
		header.check = 0xffff;
	memcpy(datagram, &header, sizeof(header));
	return whole;
}

/* A packet socket, and what the packets on it have in common. */
struct wire {
	int fd;
	struct ether_header ethernet;
	struct sockaddr_in6 source;
	struct sockaddr_in6 destination;
	uint32_t identification;
};

static void open_wire(struct wire *wire)
{
	wire->ethernet = make_ethernet(interface, destination_mac);
	wire->fd = open_packet_socket(interface, 0);
	if (getrandom(&wire->identification, sizeof(wire->identification), 0) < 0)
		die("getrandom");
}

static size_t put_ipv4(uint8_t *packet, const struct wire *wire, size_t offset, size_t size,
		       bool more)
{
	struct iphdr ip = make_ipv4(&wire->source, &wire->destination, IPPROTO_UDP, size);

	ip.id = htons(wire->identification & 0xffff);
	ip.frag_off = htons(offset / 8 | (more ? IP_MF : 0));
	ip.check = 0;
	ip.check = checksum_finish(checksum_add(0, &ip, sizeof(ip)));
	memcpy(packet, &ip, sizeof(ip));
	return sizeof(ip);
}

static size_t put_ipv6(uint8_t *packet, const struct wire *wire, size_t offset, size_t size,
		       bool more)
{
	struct fragment_header fragment = {
		.next = IPPROTO_UDP,
		.offset = htons(offset | more),
		.identification = htonl(wire->identification),
	};
	struct ip6_hdr ip = make_ipv6(&wire->source, &wire->destination, FRAGMENT_HEADER,
				      sizeof(fragment) + size);

	memcpy(packet, &ip, sizeof(ip));
	memcpy(packet + sizeof(ip), &fragment, sizeof(fragment));
	return sizeof(ip) + sizeof(fragment);
}

static void send_piece(struct wire *wire, const uint8_t *datagram, size_t whole, size_t offset)
{
	size_t size = whole - offset < PIECE ? whole - offset : PIECE,
	       length = sizeof(wire->ethernet);
	bool more = offset + size < whole;
	uint8_t frame[2048];

	wire->ethernet.ether_type = ether_type_of(&wire->source);
	memcpy(frame, &wire->ethernet, sizeof(wire->ethernet));
	if (is_ipv4(&wire->source))
		length += put_ipv4(frame + length, wire, offset, size, more);
	else
		length += put_ipv6(frame + length, wire, offset, size, more);
	memcpy(frame + length, datagram + offset, size);
	length += size;
	send_frame(wire->fd, frame, length);
}

static void send_pieces(struct wire *wire, const uint8_t *datagram, size_t whole)
{
	size_t pieces = (whole + PIECE - 1) / PIECE;

	wire->identification++;
	if (strcmp(order, "backward") == 0) {
		for (size_t i = pieces; i-- > 0;)
			send_piece(wire, datagram, whole, i * PIECE);
		return;
	}
	for (size_t i = strcmp(order, "first-lost") == 0; i < pieces; i++) {
		send_piece(wire, datagram, whole, i * PIECE);
		if (strcmp(order, "twice") == 0)
			send_piece(wire, datagram, whole, i * PIECE);
		if (strcmp(order, "overlapping") == 0)
			send_piece(wire, datagram, whole, i * PIECE + 16);
		if (pauses && i == 0 && !await_line())
			die("standard input");
	}
}

static void send_datagram(int fd, struct wire *wire, const uint8_t *payload, size_t size)
{
	static uint8_t datagram[MAX_DATAGRAM + 64];
	size_t whole;

	if (order) {
		whole = build_datagram(datagram, &wire->source, &wire->destination, payload, size);
		send_pieces(wire, datagram, whole);
	} else if (send_to(fd, payload, size, &wire->destination) < 0) {
		die("sending a datagram");
	}
}

static int open_socket(int port)
{
	int fd = open_bound_socket(SOCK_DGRAM, port);

	set_option(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
	set_option(fd, SOL_SOCKET, SO_RCVBUF, 4 << 20);
	return fd;
}

static int command_echo(char **operands)
{
	int port = parse_port(operands[0]), fd = open_socket(port);
	struct wire wire = {.source = any_address(port)};
	static uint8_t bytes[MAX_DATAGRAM];
	ssize_t got;

	if (order)
		open_wire(&wire);
	if (background && daemon(1, 0))
		die("daemon");
	for (;;) {
		got = receive_with_addresses(fd, bytes, sizeof(bytes), &wire.destination,
					     &wire.source.sin6_addr);
		if (got >= 0)
			send_datagram(fd, &wire, bytes, (size_t)got);
	}
}

/* The address that routing chooses as the source, and the port that `fd` is bound to. */
static struct sockaddr_in6 own_address(const struct sockaddr_in6 *peer, int fd)
{
	struct sockaddr_in6 own, bound;
	socklen_t size = sizeof(own);
	int probe = open_dual_socket(SOCK_DGRAM, 0);

	if (connect_socket(probe, peer) || getsockname(probe, (struct sockaddr *)&own, &size))
		die("connect");
	size = sizeof(bound);
	if (getsockname(fd, (struct sockaddr *)&bound, &size))
		die("getsockname");
	own.sin6_port = bound.sin6_port;
	close(probe);
	return own;
}

static int await_echo(int fd, const struct sockaddr_in6 *peer, const uint8_t *payload, size_t size)
{
	static uint8_t bytes[MAX_DATAGRAM];
	struct sockaddr_in6 from;
	struct in6_addr to;
	ssize_t got;

	if (!has_received(fd, patience(timeout))) {
		puts("timeout");
		return 1;
	}
	got = receive_with_addresses(fd, bytes, sizeof(bytes), &from, &to);
	if (got != (ssize_t)size || memcmp(bytes, payload, size) != 0 ||
	    memcmp(&from.sin6_addr, &peer->sin6_addr, 16) != 0 ||
	    from.sin6_port != peer->sin6_port) {
		puts("differs");
		return 1;
	}
	puts("whole");
	return 0;
}

static int command_ask(char **operands)
{
	struct sockaddr_in6 peer = parse_address(operands[0], parse_port(operands[1]));
	size_t size = (size_t)parse_number(operands[2], 1, MAX_DATAGRAM - 1);
	static uint8_t payload[MAX_DATAGRAM];
	int fd = open_socket(source_port), code = 0;
	struct wire wire = {.source = own_address(&peer, fd), .destination = peer};

	if (order)
		open_wire(&wire);
	for (int i = 0; i < count && !code; i++) {
		if (getrandom(payload, size < 256 ? size : 256, 0) < 0)
			die("getrandom");
		for (size_t at = 256; at < size; at++)
			payload[at] = (uint8_t)(payload[at - 256] + 1);
		send_datagram(fd, &wire, payload, size);
		if (!order || strcmp(order, "first-lost") != 0)
			code = await_echo(fd, &peer, payload, size);
	}
	return code;
}

int main(int argc, char **argv)
{
	static const struct tool_option options[] = {
		{"order", .text = &order},
		{"interface", .text = &interface},
		{"destination-mac", .text = &destination_mac},
		{"source-port", .number = &source_port, .high = 65535},
		{"count", .number = &count, .low = 1, .high = 100000},
		{"timeout", .number = &timeout, .low = 1, .high = 100000},
		{"background", .flag = &background},
		{"pause", .flag = &pauses},
		{NULL},
	};
	static const struct tool_command commands[] = {
		{"echo", 1, 1, command_echo},
		{"ask", 3, 3, command_ask},
		{NULL},
	};

	parse_options(argc, argv, options);
	return run_command(argc - optind, argv + optind, commands);
}
