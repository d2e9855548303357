/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * datagrams.c - UDP datagrams of up to 64 kB that are echoed and compared byte by
 * byte, cut into fragments by the stack or by hand, in an order that no stack sends.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tool.h"

#define MAX_DATAGRAM 65508
#define FRAGMENT_HEADER 44
#define PIECE 1448 /* fits a frame of either family */

struct options {
	const char *order;
	const char *interface;
	const char *destination_mac;
	int source_port;
	int count;
	int timeout;
	bool background;
	bool pause;
};

struct fragment_header {
	uint8_t next;
	uint8_t reserved;
	uint16_t offset;
	uint32_t identification;
};

const char tool_usage[] =
	"datagrams echo PORT [--background] [HOW]      sends back what comes\n"
	"datagrams ask ADDRESS PORT SIZE [--source-port N] [--count N] [--timeout MS] [--pause]\n"
	"     [HOW]\n"
	"     sends datagrams of SIZE bytes, waits for each to come back: whole, differs, timeout\n"
	"     --pause: waits for a line of standard input behind each first fragment\n"
	"HOW: --order forward|backward|twice|overlapping|first-lost --interface NAME\n"
	"     --destination-mac MAC; without it the stack cuts. Nothing is waited for where the\n"
	"     first fragment is lost.\n";

static uint32_t sum_words(uint32_t sum, const void *data, size_t size)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < size; i++) {
		sum += i % 2 ? bytes[i] : (uint32_t)bytes[i] << 8;
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return sum;
}

static uint16_t finish_sum(uint32_t sum)
{
	return htons((uint16_t)~sum);
}

/* The whole datagram, as if it were to leave in one piece. */
static size_t build_datagram(uint8_t *datagram, const struct sockaddr_in6 *source,
			     const struct sockaddr_in6 *destination, const uint8_t *payload,
			     size_t size)
{
	size_t skip = is_ipv4(source) ? 12 : 0, whole = sizeof(struct udphdr) + size;
	struct udphdr header = {
		.source = source->sin6_port, .dest = destination->sin6_port, .len = htons(whole)};
	uint32_t sum = (IPPROTO_UDP + whole) % 0xffff;

	memcpy(datagram, &header, sizeof(header));
	memcpy(datagram + sizeof(header), payload, size);
	sum = sum_words(sum, &source->sin6_addr.s6_addr[skip], 16 - skip);
	sum = sum_words(sum, &destination->sin6_addr.s6_addr[skip], 16 - skip);
	header.check = finish_sum(sum_words(sum, datagram, whole));
	if (!header.check)
		header.check = 0xffff;
	memcpy(datagram, &header, sizeof(header));
	return whole;
}

static void get_own_mac(const char *interface, uint8_t *mac)
{
	struct ifreq request = {0};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interface);
	if (fd < 0 || ioctl(fd, SIOCGIFHWADDR, &request))
		die(interface);
	memcpy(mac, request.ifr_hwaddr.sa_data, ETH_ALEN);
	close(fd);
}

struct wire {
	int fd;
	struct sockaddr_ll to;
	struct ether_header ethernet;
	struct sockaddr_in6 source;
	struct sockaddr_in6 destination;
	uint32_t identification;
};

static void open_wire(struct wire *wire, const struct options *options)
{
	uint8_t *mac = wire->ethernet.ether_dhost;

	memset(wire, 0, sizeof(*wire));
	wire->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (wire->fd < 0)
		die("packet socket");
	if (!options->interface || !options->destination_mac ||
	    sscanf(options->destination_mac, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0], &mac[1],
		   &mac[2], &mac[3], &mac[4], &mac[5]) != 6)
		die_usage();
	get_own_mac(options->interface, wire->ethernet.ether_shost);
	wire->to.sll_family = AF_PACKET;
	wire->to.sll_halen = ETH_ALEN;
	wire->to.sll_ifindex = (int)if_nametoindex(options->interface);
	if (getrandom(&wire->identification, sizeof(wire->identification), 0) < 0)
		die("getrandom");
}

static size_t put_ipv4(uint8_t *packet, const struct wire *wire, size_t offset, size_t size,
		       bool more)
{
	struct iphdr ip = {
		.version = 4,
		.ihl = 5,
		.ttl = 64,
		.protocol = IPPROTO_UDP,
		.id = htons(wire->identification & 0xffff),
		.frag_off = htons(offset / 8 | (more ? IP_MF : 0)),
		.tot_len = htons(sizeof(ip) + size),
	};

	memcpy(&ip.saddr, &wire->source.sin6_addr.s6_addr[12], 4);
	memcpy(&ip.daddr, &wire->destination.sin6_addr.s6_addr[12], 4);
	ip.check = finish_sum(sum_words(0, &ip, sizeof(ip)));
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
	struct ip6_hdr ip = {.ip6_src = wire->source.sin6_addr,
			     .ip6_dst = wire->destination.sin6_addr};

	ip.ip6_flow = htonl(6u << 28);
	ip.ip6_plen = htons(sizeof(fragment) + size);
	ip.ip6_nxt = FRAGMENT_HEADER;
	ip.ip6_hops = 64;
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

	wire->ethernet.ether_type = htons(is_ipv4(&wire->source) ? ETHERTYPE_IP : ETHERTYPE_IPV6);
	memcpy(frame, &wire->ethernet, sizeof(wire->ethernet));
	if (is_ipv4(&wire->source))
		length += put_ipv4(frame + length, wire, offset, size, more);
	else
		length += put_ipv6(frame + length, wire, offset, size, more);
	memcpy(frame + length, datagram + offset, size);
	length += size;
	if (sendto(wire->fd, frame, length, 0, (struct sockaddr *)&wire->to, sizeof(wire->to)) !=
	    (ssize_t)length)
		die("sending a fragment");
}

static void await_line(void)
{
	char line[16];

	if (!fgets(line, sizeof(line), stdin))
		die("standard input");
}

static void send_pieces(struct wire *wire, const uint8_t *datagram, size_t whole,
			const struct options *options)
{
	size_t pieces = (whole + PIECE - 1) / PIECE;
	const char *order = options->order;

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
		if (options->pause && i == 0)
			await_line();
	}
}

static void send_datagram(int fd, struct wire *wire, const struct options *options,
			  const struct sockaddr_in6 *source, const struct sockaddr_in6 *destination,
			  const uint8_t *payload, size_t size)
{
	static uint8_t datagram[MAX_DATAGRAM + 64];
	size_t whole;

	if (!options->order) {
		if (sendto(fd, payload, size, 0, (const struct sockaddr *)destination,
			   sizeof(*destination)) < 0)
			die("sending a datagram");
		return;
	}
	wire->source = *source;
	wire->destination = *destination;
	whole = build_datagram(datagram, source, destination, payload, size);
	send_pieces(wire, datagram, whole, options);
}

static int open_socket(int port)
{
	struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0), on = 1, off = 0, large = 4 << 20;

	if (fd < 0 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) ||
	    setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &large, sizeof(large)) ||
	    bind(fd, (struct sockaddr *)&any, sizeof(any)))
		die("socket");
	return fd;
}

static ssize_t receive(int fd, uint8_t *bytes, struct sockaddr_in6 *from, struct sockaddr_in6 *to)
{
	char control[CMSG_SPACE(sizeof(struct in6_pktinfo))];
	struct iovec data = {bytes, MAX_DATAGRAM};
	struct msghdr message = {.msg_name = from,
				 .msg_namelen = sizeof(*from),
				 .msg_iov = &data,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = sizeof(control)};
	ssize_t got = recvmsg(fd, &message, 0);
	struct cmsghdr *info;

	for (info = CMSG_FIRSTHDR(&message); got >= 0 && info; info = CMSG_NXTHDR(&message, info))
		if (info->cmsg_level == IPPROTO_IPV6 && info->cmsg_type == IPV6_PKTINFO)
			memcpy(&to->sin6_addr, CMSG_DATA(info), sizeof(to->sin6_addr));
	return got;
}

static _Noreturn void command_echo(int port, const struct options *options)
{
	struct sockaddr_in6 from, to = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	static uint8_t bytes[MAX_DATAGRAM];
	int fd = open_socket(port);
	struct wire wire;
	ssize_t got;

	if (options->order)
		open_wire(&wire, options);
	if (options->background && daemon(1, 0))
		die("daemon");
	for (;;) {
		got = receive(fd, bytes, &from, &to);
		if (got >= 0)
			send_datagram(fd, &wire, options, &to, &from, bytes, (size_t)got);
	}
}

/* The address that the stack would use. */
static struct sockaddr_in6 own_address(const struct sockaddr_in6 *peer, int fd)
{
	struct sockaddr_in6 own, bound;
	socklen_t size = sizeof(own);
	int probe = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (probe < 0 || connect(probe, (const struct sockaddr *)peer, sizeof(*peer)) ||
	    getsockname(probe, (struct sockaddr *)&own, &size))
		die("connect");
	size = sizeof(bound);
	if (getsockname(fd, (struct sockaddr *)&bound, &size))
		die("getsockname");
	own.sin6_port = bound.sin6_port;
	close(probe);
	return own;
}

static int await_echo(int fd, const struct sockaddr_in6 *peer, const uint8_t *payload, size_t size,
		      int timeout)
{
	struct pollfd readable = {.fd = fd, .events = POLLIN};
	static uint8_t bytes[MAX_DATAGRAM];
	struct sockaddr_in6 from, to;
	ssize_t got;

	if (poll(&readable, 1, timeout) == 0) {
		puts("timeout");
		return 1;
	}
	got = receive(fd, bytes, &from, &to);
	if (got != (ssize_t)size || memcmp(bytes, payload, size) != 0 ||
	    memcmp(&from.sin6_addr, &peer->sin6_addr, 16) != 0 ||
	    from.sin6_port != peer->sin6_port) {
		puts("differs");
		return 1;
	}
	puts("whole");
	return 0;
}

static int command_ask(const struct sockaddr_in6 *peer, size_t size, const struct options *options)
{
	static uint8_t payload[MAX_DATAGRAM];
	int fd = open_socket(options->source_port), code = 0;
	struct sockaddr_in6 own = own_address(peer, fd);
	struct wire wire;

	if (options->order)
		open_wire(&wire, options);
	for (int i = 0; i < options->count && !code; i++) {
		if (getrandom(payload, size < 256 ? size : 256, 0) < 0)
			die("getrandom");
		for (size_t at = 256; at < size; at++)
			payload[at] = (uint8_t)(payload[at - 256] + 1);
		send_datagram(fd, &wire, options, &own, peer, payload, size);
		if (!options->order || strcmp(options->order, "first-lost") != 0)
			code = await_echo(fd, peer, payload, size, options->timeout);
	}
	return code;
}

static void parse_options(int argc, char **argv, struct options *options)
{
	static const struct option names[] = {
		{"order", required_argument, NULL, 'o'},
		{"interface", required_argument, NULL, 'i'},
		{"destination-mac", required_argument, NULL, 'd'},
		{"source-port", required_argument, NULL, 's'},
		{"count", required_argument, NULL, 'c'},
		{"timeout", required_argument, NULL, 't'},
		{"background", no_argument, NULL, 'b'},
		{"pause", no_argument, NULL, 'p'},
		{NULL, 0, NULL, 0},
	};
	int letter;

	while ((letter = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (letter) {
		case 'o':
			options->order = optarg;
			break;
		case 'i':
			options->interface = optarg;
			break;
		case 'd':
			options->destination_mac = optarg;
			break;
		case 's':
			options->source_port = parse_number(optarg, 0, 65535);
			break;
		case 'c':
			options->count = parse_number(optarg, 1, 100000);
			break;
		case 't':
			options->timeout = patience(parse_number(optarg, 1, 100000));
			break;
		case 'b':
			options->background = true;
			break;
		case 'p':
			options->pause = true;
			break;
		default:
			die_usage();
		}
	}
}

int main(int argc, char **argv)
{
	struct options options = {.count = 1, .timeout = patience(1000)};
	struct sockaddr_in6 peer;

	parse_options(argc, argv, &options);
	argv += optind;
	argc -= optind;
	if (argc == 2 && strcmp(argv[0], "echo") == 0)
		command_echo(parse_number(argv[1], 1, 65535), &options);
	if (argc != 4 || strcmp(argv[0], "ask") != 0)
		die_usage();
	peer = parse_address(argv[1], parse_number(argv[2], 1, 65535));
	return command_ask(&peer, (size_t)parse_number(argv[3], 1, MAX_DATAGRAM - 1), &options);
}
