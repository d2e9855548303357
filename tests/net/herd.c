/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * herd.c - thousands of flows that no stack keeps: every packet is built here. Each of them is
 * opened, carries data there and back, and then sends nothing any more: of TCP a handshake and
 * the data, else two questions, so that each is seen twice from this side. Or only the first
 * packet of each is sent, round and round, at a given rate.
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tool.h"

#define TRIES 3
#define TRY_MS 150
#define GIVE_UP 512 /* so many unanswered in a row: the rest would fare no better */
#define BATCH 64
#define BUFFER (8 << 20)
#define FIRST_SEQUENCE 1000
#define DATA_SIZE 2 /* one byte could be taken for a keep-alive */

const char tool_usage[] =
	"herd tcp|udp|icmp INTERFACE MAC SOURCE DESTINATION PORT COUNT [--sources N] [--ports N]\n"
	"     [--first N] [--at-once N] [--silent]\n"
	"     opens COUNT flows, prints how many were answered\n"
	"     --sources: so many addresses, counted up from SOURCE; --ports: likewise from PORT\n"
	"     --first: the first source port, or identifier of a ping; each address has them all\n"
	"     --silent: nothing is sent behind the handshake, or the first answer\n"
	"herd ... --seconds S --rate N [--destinations N]\n"
	"     only the first packet of each, N a second; --destinations: as --sources\n"
	"The interface's own stack must not answer: it does not have these addresses, or drops\n"
	"what comes in. IPv4.\n";

enum state {
	STATE_UNUSED,
	STATE_ASKED,
	STATE_CONNECTED, /* the data, or the second question, is under way */
	STATE_ANSWERED,
	STATE_LOST,
};

struct flow {
	uint8_t state; /* enum state */
	uint8_t tries;
	uint32_t acknowledged; /* TCP: the server's next sequence number */
	long due;
};

struct packet {
	struct ethhdr ethernet;
	struct iphdr ip;
	union {
		struct tcphdr tcp;
		struct udphdr udp;
		struct icmphdr icmp;
	};
	uint8_t data[DATA_SIZE];
} __attribute__((packed));

struct options {
	uint8_t protocol;
	uint8_t destination_mac[ETH_ALEN];
	const char *interface;
	uint32_t source; /* in host order, as all below */
	uint32_t destination;
	int port;
	int count;
	int sources;
	int ports;
	int destinations;
	int first;
	int at_once;
	int rate;
	int seconds;
	bool silent;
};

static struct options options = {
	.sources = 1, .ports = 1, .destinations = 1, .first = 1024, .at_once = 256};
static struct flow *flows;
static int *queue; /* flows by the time when they are due */
static int fd, queue_head, queue_tail, answered, lost, lost_in_a_row;

static long milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static uint32_t sum_words(uint32_t sum, const void *data, size_t size)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < size; i++)
		sum += i % 2 ? bytes[i] : (uint32_t)bytes[i] << 8;
	return sum;
}

static uint16_t finish_sum(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

static size_t payload_offset(void)
{
	if (options.protocol == IPPROTO_TCP)
		return offsetof(struct packet, tcp) + sizeof(struct tcphdr);
	return offsetof(struct packet, udp) + sizeof(struct udphdr);
}

/* Behind everything else; the addresses count in TCP's. UDP needs none. */
static void set_checksums(struct packet *packet, size_t size)
{
	size_t length = size - offsetof(struct packet, tcp);
	uint32_t sum = sum_words(IPPROTO_TCP + (uint32_t)length, &packet->ip.saddr, 8);

	packet->ip.check = finish_sum(sum_words(0, &packet->ip, sizeof(packet->ip)));
	if (options.protocol == IPPROTO_TCP)
		packet->tcp.check = finish_sum(sum_words(sum, &packet->tcp, length));
	else if (options.protocol == IPPROTO_ICMP)
		packet->icmp.checksum = finish_sum(sum_words(0, &packet->icmp, length));
}

/* One of a flow, with its ports and addresses and nothing else. */
static void plan_packet(struct packet *packet, int number)
{
	int span = 65536 - options.first;
	uint16_t source = htons((uint16_t)(options.first + number / options.sources % span));
	uint16_t port = htons((uint16_t)(options.port + number % options.ports));

	memset(packet, 0, sizeof(*packet));
	memcpy(packet->ethernet.h_dest, options.destination_mac, ETH_ALEN);
	packet->ethernet.h_source[0] = 2;
	packet->ethernet.h_proto = htons(ETH_P_IP);
	packet->ip.version = 4;
	packet->ip.ihl = 5;
	packet->ip.ttl = 64;
	packet->ip.protocol = options.protocol;
	packet->ip.saddr = htonl(options.source + (uint32_t)(number % options.sources));
	packet->ip.daddr = htonl(options.destination + (uint32_t)(number % options.destinations));
	if (options.protocol == IPPROTO_ICMP) {
		packet->icmp.type = ICMP_ECHO;
		packet->icmp.un.echo.id = source;
	} else { /* UDP's ports are where TCP's are */
		packet->tcp.source = source;
		packet->tcp.dest = port;
	}
}

/* Returns the size. A datagram and an echo have payload, too. */
static size_t finish_packet(struct packet *packet, bool with_data)
{
	size_t size = payload_offset() + (with_data ? DATA_SIZE : 0);

	memset(packet->data, '?', DATA_SIZE);
	packet->ip.tot_len = htons((uint16_t)(size - ETH_HLEN));
	if (options.protocol == IPPROTO_UDP)
		packet->udp.len = htons((uint16_t)(size - offsetof(struct packet, udp)));
	set_checksums(packet, size);
	return size;
}

static size_t first_packet(struct packet *packet, int number)
{
	plan_packet(packet, number);
	if (options.protocol != IPPROTO_TCP)
		return finish_packet(packet, true);
	packet->tcp.doff = 5;
	packet->tcp.syn = 1;
	packet->tcp.window = htons(64240);
	packet->tcp.seq = htonl(FIRST_SEQUENCE);
	return finish_packet(packet, false);
}

/* Full queues: what is lost is sent again. */
static void send_frame(const void *frame, size_t size)
{
	if (send(fd, frame, size, 0) < 0 && errno != ENOBUFS && errno != EAGAIN)
		die("send");
}

static void send_acknowledgment(int number, bool with_data)
{
	bool sent_data = flows[number].state == STATE_ANSWERED && !options.silent;
	uint32_t sequence = FIRST_SEQUENCE + 1 + (sent_data ? DATA_SIZE : 0);
	struct packet packet;

	plan_packet(&packet, number);
	packet.tcp.doff = 5;
	packet.tcp.ack = 1;
	packet.tcp.psh = with_data;
	packet.tcp.window = htons(64240);
	packet.tcp.seq = htonl(sequence);
	packet.tcp.ack_seq = htonl(flows[number].acknowledged);
	send_frame(&packet, finish_packet(&packet, with_data));
}

static void send_question(int number)
{
	struct packet packet;
	size_t size;

	if (options.protocol == IPPROTO_TCP && flows[number].state == STATE_CONNECTED) {
		send_acknowledgment(number, true);
		return;
	}
	size = first_packet(&packet, number);
	send_frame(&packet, size);
}

static void ask(int number)
{
	if (flows[number].state == STATE_UNUSED)
		flows[number].state = STATE_ASKED;
	send_question(number);
	flows[number].tries++;
	flows[number].due = milliseconds() + patience(TRY_MS);
	queue[queue_tail++] = number;
}

static void conclude(int number, enum state state)
{
	if (flows[number].state >= STATE_ANSWERED)
		return;
	flows[number].state = (uint8_t)state;
	if (state == STATE_ANSWERED) {
		answered++;
		lost_in_a_row = 0;
	} else {
		lost++;
		lost_in_a_row++;
	}
}

static void take_tcp(int number, const struct packet *packet, size_t length)
{
	const struct tcphdr tcp = packet->tcp;
	size_t headers = sizeof(packet->ip) + tcp.doff * 4u;
	struct flow *flow = &flows[number];

	if (tcp.rst) {
		conclude(number, STATE_LOST);
	} else if (tcp.syn && tcp.ack) {
		flow->acknowledged = ntohl(tcp.seq) + 1;
		if (options.silent)
			conclude(number, STATE_ANSWERED);
		else if (flow->state == STATE_ASKED)
			flow->state = STATE_CONNECTED;
		if (options.silent || flow->state == STATE_CONNECTED)
			send_acknowledgment(number, !options.silent);
	} else if (length > headers && flow->state >= STATE_CONNECTED) {
		flow->acknowledged = ntohl(tcp.seq) + (uint32_t)(length - headers);
		conclude(number, STATE_ANSWERED);
		send_acknowledgment(number, false);
	}
}

/* Of a datagram or a ping */
static void take_answer(int number)
{
	if (options.silent || flows[number].state == STATE_CONNECTED) {
		conclude(number, STATE_ANSWERED);
	} else if (flows[number].state == STATE_ASKED) {
		flows[number].state = STATE_CONNECTED;
		send_question(number);
	}
}

/* Which flow it belongs to; -1: none. */
static int number_of(const struct packet *packet)
{
	uint32_t address = ntohl(packet->ip.daddr) - options.source;
	int port = ntohs(packet->tcp.dest), number;

	if (packet->ip.protocol != options.protocol || packet->ip.ihl != 5)
		return -1;
	if (options.protocol == IPPROTO_ICMP) {
		if (packet->icmp.type != ICMP_ECHOREPLY)
			return -1;
		port = ntohs(packet->icmp.un.echo.id);
	}
	if (address >= (uint32_t)options.sources || port < options.first)
		return -1;
	number = (port - options.first) * options.sources + (int)address;
	return number < options.count && flows[number].state != STATE_UNUSED ? number : -1;
}

static void receive_all(void)
{
	union {
		struct packet packet;
		uint8_t bytes[2048];
	} got;
	ssize_t size;
	int number;

	while ((size = recv(fd, &got, sizeof(got), MSG_DONTWAIT)) > 0) {
		number = size >= (ssize_t)payload_offset() ? number_of(&got.packet) : -1;
		if (number < 0)
			continue;
		if (options.protocol == IPPROTO_TCP)
			take_tcp(number, &got.packet, ntohs(got.packet.ip.tot_len));
		else
			take_answer(number);
	}
}

static void ask_again(void)
{
	long now = milliseconds();

	while (queue_head < queue_tail && flows[queue[queue_head]].due <= now) {
		int number = queue[queue_head++];

		if (flows[number].state >= STATE_ANSWERED)
			continue;
		if (flows[number].tries < TRIES)
			ask(number);
		else
			conclude(number, STATE_LOST);
	}
}

static void open_flows(void)
{
	struct pollfd readable = {.fd = fd, .events = POLLIN};
	int begun = 0;

	flows = calloc((size_t)options.count, sizeof(*flows));
	queue = calloc((size_t)options.count * TRIES, sizeof(*queue));
	if (!flows || !queue)
		die("calloc");
	while (answered + lost < begun || (begun < options.count && lost_in_a_row < GIVE_UP)) {
		while (begun < options.count && lost_in_a_row < GIVE_UP &&
		       begun - answered - lost < options.at_once)
			ask(begun++);
		poll(&readable, 1, 1);
		receive_all();
		ask_again();
	}
	printf("answered=%d of=%d\n", answered, begun);
}

/* As many as are due until now, a batch at a time. */
static int send_due(int number, int due)
{
	static struct packet packets[BATCH];
	struct mmsghdr messages[BATCH] = {0};
	struct iovec parts[BATCH];
	int count = due - number < BATCH ? due - number : BATCH;

	for (int i = 0; i < count; i++) {
		parts[i].iov_base = &packets[i];
		parts[i].iov_len = first_packet(&packets[i], (number + i) % options.count);
		messages[i].msg_hdr.msg_iov = &parts[i];
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	if (sendmmsg(fd, messages, (unsigned int)count, 0) < 0 && errno != ENOBUFS)
		die("sendmmsg");
	return number + count;
}

static void send_at_rate(void)
{
	long begin = milliseconds(), end = begin + 1000L * options.seconds, now;
	int sent = 0;

	while ((now = milliseconds()) < end) {
		int due = (int)((now - begin) * options.rate / 1000);

		if (sent < due)
			sent = send_due(sent, due);
		else
			usleep(500);
	}
	printf("sent=%d per_second=%ld\n", sent, sent * 1000L / (now - begin));
}

static void open_socket(void)
{
	struct sockaddr_ll local = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP)};
	int size = BUFFER, on = 1;

	local.sll_ifindex = (int)if_nametoindex(options.interface);
	fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, options.seconds ? 0 : htons(ETH_P_IP));
	if (options.seconds)
		local.sll_protocol = 0; /* nothing is read */
	if (fd < 0 || !local.sll_ifindex ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof(on)) ||
	    bind(fd, (struct sockaddr *)&local, sizeof(local)))
		die(options.interface);
}

static uint32_t parse_ipv4(const char *text)
{
	struct in_addr address;

	if (inet_pton(AF_INET, text, &address) != 1)
		die_usage();
	return ntohl(address.s_addr);
}

static void parse_arguments(char **argv)
{
	unsigned int mac[ETH_ALEN];

	if (strcmp(argv[0], "tcp") == 0)
		options.protocol = IPPROTO_TCP;
	else if (strcmp(argv[0], "udp") == 0)
		options.protocol = IPPROTO_UDP;
	else if (strcmp(argv[0], "icmp") == 0)
		options.protocol = IPPROTO_ICMP;
	else
		die_usage();
	options.interface = argv[1];
	if (sscanf(argv[2], "%x:%x:%x:%x:%x:%x", &mac[0], &mac[1], &mac[2], &mac[3], &mac[4],
		   &mac[5]) != ETH_ALEN)
		die_usage();
	for (int i = 0; i < ETH_ALEN; i++)
		options.destination_mac[i] = (uint8_t)mac[i];
	options.source = parse_ipv4(argv[3]);
	options.destination = parse_ipv4(argv[4]);
	options.port = parse_number(argv[5], 0, 65535);
	options.count = parse_number(argv[6], 1, 1 << 20);
}

static void parse_options(int argc, char **argv)
{
	static const struct option names[] = {
		{"sources", required_argument, NULL, 's'},
		{"ports", required_argument, NULL, 'p'},
		{"destinations", required_argument, NULL, 'd'},
		{"first", required_argument, NULL, 'f'},
		{"at-once", required_argument, NULL, 'a'},
		{"rate", required_argument, NULL, 'r'},
		{"seconds", required_argument, NULL, 't'},
		{"silent", no_argument, NULL, 'S'},
		{NULL, 0, NULL, 0},
	};
	int letter, *value;

	while ((letter = getopt_long(argc, argv, "", names, NULL)) != -1) {
		value = letter == 's'   ? &options.sources
			: letter == 'p' ? &options.ports
			: letter == 'd' ? &options.destinations
			: letter == 'f' ? &options.first
			: letter == 'a' ? &options.at_once
			: letter == 'r' ? &options.rate
			: letter == 't' ? &options.seconds
					: NULL;
		if (letter == 'S')
			options.silent = true;
		else if (value)
			*value = parse_number(optarg, 1, 1 << 20);
		else
			die_usage();
	}
}

int main(int argc, char **argv)
{
	parse_options(argc, argv);
	if (argc - optind != 7)
		die_usage();
	parse_arguments(argv + optind);
	if (!options.rate != !options.seconds ||
	    (!options.rate && options.count > options.sources * (65536 - options.first)))
		die_usage();
	open_socket();
	if (options.rate)
		send_at_rate();
	else
		open_flows();
	return 0;
}
