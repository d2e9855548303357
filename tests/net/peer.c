/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * peer.c - the two ends of every connection that the network tests make: a
 * server that tells whom it sees, a client that tells who answered, and a
 * sender of forged packets.
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
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tool.h"

#define LINE_SIZE 512

enum exit_code { EXIT_TIMEOUT = 1, EXIT_REFUSED = 3, EXIT_BROKEN = 4, EXIT_ENDED = 5 };

struct options {
	const char *name;
	const char *from;
	const char *interface;
	const char *destination_mac;
	const char *tcp_flags;
	int source_port;
	int count;
	int interval;
	int timeout;
	int ttl;
	int tos;
	int priority;
	bool background;
	bool on_demand;
	bool reset;
	bool connected;
	bool keep_going;
	bool ip_options;
};

const char tool_usage[] =
	"peer serve tcp|udp|sctp ADDRESS PORT [--name NAME] [--background]\n"
	"     answers each line or datagram with: name=... client=... local=...; ADDRESS may be "
	"any\n"
	"peer ask tcp|udp|sctp ADDRESS PORT [--from ADDRESS] [--source-port N] [--count N]\n"
	"     [--interval MS] [--timeout MS] [--on-demand] [--keep-going] [--reset] [--ttl N]\n"
	"     [--ip-options] [--tos N] [--priority N]\n"
	"     prints each answer and from=..., or timeout, refused, closed; or ended, where "
	"somebody\n"
	"     else has ended a UDP socket: on demand it is connected again then\n"
	"     --on-demand: asks once for each line of standard input, over one socket, until "
	"\"bye\"\n"
	"     --connected: a UDP socket that takes answers from the server only\n"
	"     --keep-going: a question without an answer does not end it\n"
	"     --reset: ends the connection by RST\n"
	"     --ip-options: each packet has some that mean nothing; IPv4\n"
	"     --tos: IPv4's type of service; --priority: the socket's own, SO_PRIORITY\n"
	"peer forge tcp|udp SOURCE PORT DESTINATION PORT --interface NAME --destination-mac MAC\n"
	"     [--tcp-flags LETTERS of SAFRP]: sends one packet, whatever the stack thinks of it\n";

/* What "tcp" below stands for: SCTP's streams behave alike, where the kernel has them. */
static int stream_protocol = IPPROTO_TCP;

static struct sockaddr_in6 parse_any_address(const char *text, int port)
{
	if (strcmp(text, "any") == 0)
		return (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port)};
	return parse_address(text, port);
}

static int open_socket(bool tcp)
{
	int on = 1, off = 0;
	int fd = tcp ? socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, stream_protocol)
		     : socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		die("socket");
	if (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)))
		die("setsockopt");
	return fd;
}

static void format_answer(char *line, const struct options *options,
			  const struct sockaddr_in6 *client, const struct sockaddr_in6 *local)
{
	char client_text[ENDPOINT_SIZE], local_text[ENDPOINT_SIZE];

	snprintf(line, LINE_SIZE, "name=%s client=%s local=%s\n", options->name,
		 format_address(client, client_text), format_address(local, local_text));
}

static void serve_connection(int fd, const struct options *options)
{
	struct sockaddr_in6 client, local;
	socklen_t size = sizeof(client);
	char line[LINE_SIZE], buffer[LINE_SIZE];
	ssize_t got;

	if (getpeername(fd, (struct sockaddr *)&client, &size))
		return;
	size = sizeof(local);
	if (getsockname(fd, (struct sockaddr *)&local, &size))
		return;
	format_answer(line, options, &client, &local);
	while ((got = read(fd, buffer, sizeof(buffer))) > 0)
		if (memchr(buffer, '\n', got) && write(fd, line, strlen(line)) < 0)
			return;
}

static void accept_connection(int fd, const struct options *options)
{
	int connection = accept(fd, NULL, NULL);

	if (connection < 0)
		return;
	if (fork() == 0) {
		close(fd);
		serve_connection(connection, options);
		_exit(0);
	}
	close(connection);
}

/* The address that the datagram came to, so that the reply leaves with it, by whatever
 * interface routing chooses. */
static void get_local_address(struct msghdr *message, struct sockaddr_in6 *local)
{
	struct cmsghdr *control;
	struct in6_pktinfo *info;

	for (control = CMSG_FIRSTHDR(message); control; control = CMSG_NXTHDR(message, control)) {
		if (control->cmsg_level != IPPROTO_IPV6 || control->cmsg_type != IPV6_PKTINFO)
			continue;
		info = (struct in6_pktinfo *)CMSG_DATA(control);
		local->sin6_addr = info->ipi6_addr;
		info->ipi6_ifindex = 0;
	}
}

static void serve_datagram(int fd, int port, const struct options *options)
{
	char buffer[LINE_SIZE], line[LINE_SIZE];
	char control[CMSG_SPACE(sizeof(struct in6_pktinfo))];
	struct sockaddr_in6 client, local = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	struct iovec data = {buffer, sizeof(buffer)};
	struct msghdr message = {
		.msg_name = &client,
		.msg_namelen = sizeof(client),
		.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};

	if (recvmsg(fd, &message, 0) < 0)
		return;
	get_local_address(&message, &local);
	format_answer(line, options, &client, &local);
	data.iov_base = line;
	data.iov_len = strlen(line);
	sendmsg(fd, &message, 0);
}

static _Noreturn void command_serve(bool tcp, const char *address, int port,
				    const struct options *options)
{
	struct sockaddr_in6 local = parse_any_address(address, port);
	int fd = open_socket(tcp), on = 1;

	signal(SIGCHLD, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	if (!tcp && setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on)))
		die("IPV6_RECVPKTINFO");
	if (bind(fd, (struct sockaddr *)&local, sizeof(local)))
		die("bind");
	if (tcp && listen(fd, 512))
		die("listen");
	if (options->background && daemon(1, 0))
		die("daemon");
	for (;;) {
		if (tcp)
			accept_connection(fd, options);
		else
			serve_datagram(fd, port, options);
	}
}

static int connect_within(int fd, const struct sockaddr_in6 *address, int timeout)
{
	struct timeval limit = {timeout / 1000, timeout % 1000 * 1000};

	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)))
		die("SO_SNDTIMEO");
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0)
		return 0;
	if (errno == EINPROGRESS || errno == EAGAIN || errno == ETIMEDOUT) {
		puts("timeout");
		return EXIT_TIMEOUT;
	}
	if (errno == ECONNREFUSED) {
		puts("refused");
		return EXIT_REFUSED;
	}
	printf("broken: %s\n", strerror(errno));
	return EXIT_BROKEN;
}

static int report_failed_read(ssize_t got)
{
	if (got == 0) {
		puts("closed");
		return EXIT_BROKEN;
	}
	if (errno == ECONNABORTED || errno == EDESTADDRREQ) {
		puts("ended");
		return EXIT_ENDED;
	}
	if (errno == ECONNREFUSED) {
		puts("refused");
		return EXIT_REFUSED;
	}
	printf("broken: %s\n", strerror(errno));
	return EXIT_BROKEN;
}

/* UDP stays unconnected unless told otherwise, so that an answer from elsewhere is
 * seen, not filtered. */
static int ask_once(int fd, bool tcp, const struct sockaddr_in6 *server,
		    const struct options *options)
{
	bool connected = tcp || options->connected;
	static const char question[] = "who?\n";
	char line[LINE_SIZE], from_text[ENDPOINT_SIZE];
	struct sockaddr_in6 from = *server;
	socklen_t size = sizeof(from);
	struct pollfd readable = {.fd = fd, .events = POLLIN};
	ssize_t got;

	if (sendto(fd, question, sizeof(question) - 1, MSG_NOSIGNAL,
		   connected ? NULL : (const struct sockaddr *)server,
		   connected ? 0 : sizeof(*server)) < 0)
		return report_failed_read(-1);
	if (poll(&readable, 1, options->timeout) == 0) {
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

/* Of the two errors that the kernel has for it one may be left. */
static void connect_again(int fd, const struct sockaddr_in6 *server)
{
	int error;
	socklen_t size = sizeof(error);

	getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
	if (connect(fd, (const struct sockaddr *)server, sizeof(*server)))
		die("connect");
}

static int ask_on_demand(int fd, bool tcp, const struct sockaddr_in6 *server,
			 const struct options *options)
{
	char line[LINE_SIZE];
	int result = 0;

	while (fgets(line, sizeof(line), stdin) && strcmp(line, "bye\n") != 0) {
		result = ask_once(fd, tcp, server, options);
		if (tcp && result >= EXIT_BROKEN)
			return result;
		if (result == EXIT_ENDED)
			connect_again(fd, server);
	}
	return result;
}

static void sleep_milliseconds(int milliseconds)
{
	struct timespec pause = {milliseconds / 1000, milliseconds % 1000 * 1000000L};

	nanosleep(&pause, NULL);
}

static int ask_counted(int fd, bool tcp, const struct sockaddr_in6 *server,
		       const struct options *options)
{
	int result = 0;

	for (int i = 0; i < options->count; i++) {
		int code;

		if (i)
			sleep_milliseconds(options->interval);
		code = ask_once(fd, tcp, server, options);
		if (code && !options->keep_going)
			return code;
		if (code)
			result = code;
	}
	return result;
}

/* IPv4 goes by IP_TTL, from an IPv6 socket too. A UDP socket hears of an exceeded
 * hop limit only if it wants every error. */
static void limit_hops(int fd, int hops)
{
	int on = 1;

	if (setsockopt(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, &hops, sizeof(hops)) ||
	    setsockopt(fd, IPPROTO_IP, IP_TTL, &hops, sizeof(hops)) ||
	    setsockopt(fd, IPPROTO_IPV6, IPV6_RECVERR, &on, sizeof(on)) ||
	    setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof(on)))
		die("hop limit");
}

/* No operation, four times (RFC 791 3.1) */
static void add_ip_options(int fd)
{
	static const uint8_t options[] = {1, 1, 1, 1};

	if (setsockopt(fd, IPPROTO_IP, IP_OPTIONS, options, sizeof(options)))
		die("IP_OPTIONS");
}

static void set_priorities(int fd, const struct options *options)
{
	if (options->tos && setsockopt(fd, IPPROTO_IP, IP_TOS, &options->tos, sizeof(options->tos)))
		die("IP_TOS");
	if (options->priority &&
	    setsockopt(fd, SOL_SOCKET, SO_PRIORITY, &options->priority, sizeof(options->priority)))
		die("SO_PRIORITY");
}

static int command_ask(bool tcp, const char *address, int port, const struct options *options)
{
	struct sockaddr_in6 server = parse_any_address(address, port);
	struct sockaddr_in6 local = parse_any_address(options->from, options->source_port);
	struct linger no_linger = {.l_onoff = 1, .l_linger = 0};
	int fd = open_socket(tcp), result;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (bind(fd, (struct sockaddr *)&local, sizeof(local)))
		die("bind");
	if (options->ttl)
		limit_hops(fd, options->ttl);
	if (options->ip_options)
		add_ip_options(fd);
	set_priorities(fd, options);
	if (tcp || options->connected) {
		result = connect_within(fd, &server, options->timeout);
		if (result)
			return result;
	}
	if (options->on_demand)
		result = ask_on_demand(fd, tcp, &server, options);
	else
		result = ask_counted(fd, tcp, &server, options);
	if (options->reset)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &no_linger, sizeof(no_linger));
	close(fd);
	return result;
}

static uint32_t checksum_add(uint32_t sum, const void *data, size_t size)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < size; i++)
		sum += i % 2 ? bytes[i] : (uint32_t)bytes[i] << 8;
	return sum;
}

static uint16_t checksum_finish(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

/* The pseudo header of RFC 793 and of RFC 8200 8.1 differ in form, not in sum. */
static uint16_t transport_checksum(const struct sockaddr_in6 *source,
				   const struct sockaddr_in6 *destination, int protocol,
				   const void *segment, size_t size)
{
	size_t skip = is_ipv4(source) ? 12 : 0;
	uint32_t sum = protocol + size;

	sum = checksum_add(sum, &source->sin6_addr.s6_addr[skip], 16 - skip);
	sum = checksum_add(sum, &destination->sin6_addr.s6_addr[skip], 16 - skip);
	return checksum_finish(checksum_add(sum, segment, size));
}

static uint8_t parse_tcp_flags(const char *letters)
{
	static const char order[] = "FSRPA";
	uint8_t flags = 0;

	for (; *letters; letters++) {
		const char *found = strchr(order, *letters);

		if (!found)
			die_usage();
		flags |= 1 << (found - order);
	}
	return flags;
}

static size_t build_tcp(uint8_t *segment, const struct sockaddr_in6 *source,
			const struct sockaddr_in6 *destination, const char *flags)
{
	struct tcphdr header = {
		.source = source->sin6_port,
		.dest = destination->sin6_port,
		.seq = htonl(1000),
		.doff = 5,
		.window = htons(1000),
	};
	uint16_t sum;

	memcpy(segment, &header, sizeof(header));
	segment[13] = parse_tcp_flags(flags);
	sum = transport_checksum(source, destination, IPPROTO_TCP, segment, sizeof(header));
	memcpy(segment + offsetof(struct tcphdr, check), &sum, sizeof(sum));
	return sizeof(header);
}

static size_t build_udp(uint8_t *segment, const struct sockaddr_in6 *source,
			const struct sockaddr_in6 *destination)
{
	static const char question[] = "who?\n";
	size_t size = sizeof(struct udphdr) + sizeof(question) - 1;
	struct udphdr header = {
		.source = source->sin6_port,
		.dest = destination->sin6_port,
		.len = htons(size),
	};
	uint16_t sum;

	memcpy(segment, &header, sizeof(header));
	memcpy(segment + sizeof(header), question, sizeof(question) - 1);
	sum = transport_checksum(source, destination, IPPROTO_UDP, segment, size);
	memcpy(segment + offsetof(struct udphdr, check), &sum, sizeof(sum));
	return size;
}

static size_t build_ip(uint8_t *packet, const struct sockaddr_in6 *source,
		       const struct sockaddr_in6 *destination, int protocol, size_t payload)
{
	struct iphdr ip4 = {
		.version = 4,
		.ihl = 5,
		.ttl = 64,
		.protocol = protocol,
		.tot_len = htons(sizeof(ip4) + payload),
	};
	struct ip6_hdr ip6 = {.ip6_src = source->sin6_addr, .ip6_dst = destination->sin6_addr};

	if (is_ipv4(source)) {
		memcpy(&ip4.saddr, &source->sin6_addr.s6_addr[12], 4);
		memcpy(&ip4.daddr, &destination->sin6_addr.s6_addr[12], 4);
		ip4.check = checksum_finish(checksum_add(0, &ip4, sizeof(ip4)));
		memcpy(packet, &ip4, sizeof(ip4));
		return sizeof(ip4);
	}
	ip6.ip6_flow = htonl(6u << 28);
	ip6.ip6_plen = htons(payload);
	ip6.ip6_nxt = protocol;
	ip6.ip6_hops = 64;
	memcpy(packet, &ip6, sizeof(ip6));
	return sizeof(ip6);
}

static void parse_mac(const char *text, uint8_t *mac)
{
	if (!text || sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0], &mac[1], &mac[2],
			    &mac[3], &mac[4], &mac[5]) != 6)
		die_usage();
}

static void send_frame(const uint8_t *frame, size_t size, const char *interface)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_halen = ETH_ALEN};

	if (fd < 0)
		die("packet socket");
	to.sll_ifindex = (int)if_nametoindex(interface);
	if (!to.sll_ifindex)
		die(interface);
	if (sendto(fd, frame, size, 0, (struct sockaddr *)&to, sizeof(to)) != (ssize_t)size)
		die("sendto");
	close(fd);
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

static int command_forge(bool tcp, char **endpoints, const struct options *options)
{
	struct sockaddr_in6 source =
		parse_any_address(endpoints[0], parse_number(endpoints[1], 0, 65535));
	struct sockaddr_in6 destination =
		parse_any_address(endpoints[2], parse_number(endpoints[3], 0, 65535));
	uint8_t frame[256] = {0}, segment[128];
	struct ether_header *ethernet = (struct ether_header *)frame;
	size_t size, payload;

	if (!options->interface)
		die_usage();
	parse_mac(options->destination_mac, ethernet->ether_dhost);
	get_own_mac(options->interface, ethernet->ether_shost);
	ethernet->ether_type = htons(is_ipv4(&source) ? ETHERTYPE_IP : ETHERTYPE_IPV6);
	payload = tcp ? build_tcp(segment, &source, &destination, options->tcp_flags)
		      : build_udp(segment, &source, &destination);
	size = sizeof(*ethernet);
	size += build_ip(frame + size, &source, &destination, tcp ? IPPROTO_TCP : IPPROTO_UDP,
			 payload);
	memcpy(frame + size, segment, payload);
	send_frame(frame, size + payload, options->interface);
	return 0;
}

static void parse_options(int argc, char **argv, struct options *options)
{
	static const struct option names[] = {
		{"name", required_argument, NULL, 'n'},
		{"from", required_argument, NULL, 'f'},
		{"source-port", required_argument, NULL, 's'},
		{"count", required_argument, NULL, 'c'},
		{"interval", required_argument, NULL, 'i'},
		{"timeout", required_argument, NULL, 't'},
		{"ttl", required_argument, NULL, 'T'},
		{"tos", required_argument, NULL, 'y'},
		{"priority", required_argument, NULL, 'p'},
		{"interface", required_argument, NULL, 'I'},
		{"destination-mac", required_argument, NULL, 'd'},
		{"tcp-flags", required_argument, NULL, 'F'},
		{"background", no_argument, NULL, 'b'},
		{"on-demand", no_argument, NULL, 'o'},
		{"keep-going", no_argument, NULL, 'k'},
		{"reset", no_argument, NULL, 'r'},
		{"connected", no_argument, NULL, 'C'},
		{"ip-options", no_argument, NULL, 'O'},
		{NULL, 0, NULL, 0},
	};
	int letter;

	while ((letter = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (letter) {
		case 'n':
			options->name = optarg;
			break;
		case 'f':
			options->from = optarg;
			break;
		case 's':
			options->source_port = parse_number(optarg, 0, 65535);
			break;
		case 'c':
			options->count = parse_number(optarg, 1, 1000000);
			break;
		case 'i':
			options->interval = parse_number(optarg, 0, 100000);
			break;
		case 't':
			options->timeout = patience(parse_number(optarg, 1, 100000));
			break;
		case 'T':
			options->ttl = parse_number(optarg, 1, 255);
			break;
		case 'y':
			options->tos = parse_number(optarg, 0, 255);
			break;
		case 'p':
			options->priority = parse_number(optarg, 0, 7);
			break;
		case 'I':
			options->interface = optarg;
			break;
		case 'd':
			options->destination_mac = optarg;
			break;
		case 'F':
			options->tcp_flags = optarg;
			break;
		case 'b':
			options->background = true;
			break;
		case 'o':
			options->on_demand = true;
			break;
		case 'k':
			options->keep_going = true;
			break;
		case 'r':
			options->reset = true;
			break;
		case 'C':
			options->connected = true;
			break;
		case 'O':
			options->ip_options = true;
			break;
		default:
			die_usage();
		}
	}
}

int main(int argc, char **argv)
{
	struct options options = {
		.name = "peer",
		.from = "any",
		.tcp_flags = "S",
		.count = 1,
		.timeout = patience(1000),
	};
	bool tcp;
	int arguments;

	parse_options(argc, argv, &options);
	argv += optind;
	arguments = argc - optind;
	if (arguments < 4)
		die_usage();
	if (strcmp(argv[1], "sctp") == 0)
		stream_protocol = IPPROTO_SCTP;
	else if (strcmp(argv[1], "tcp") != 0 && strcmp(argv[1], "udp") != 0)
		die_usage();
	tcp = strcmp(argv[1], "udp") != 0;
	if (strcmp(argv[0], "serve") == 0 && arguments == 4)
		command_serve(tcp, argv[2], parse_number(argv[3], 1, 65535), &options);
	if (strcmp(argv[0], "ask") == 0 && arguments == 4)
		return command_ask(tcp, argv[2], parse_number(argv[3], 1, 65535), &options);
	if (strcmp(argv[0], "forge") == 0 && arguments == 6 && stream_protocol == IPPROTO_TCP)
		return command_forge(tcp, argv + 2, &options);
	die_usage();
}
