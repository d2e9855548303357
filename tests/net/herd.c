/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * herd.c - thousands of flows without an IP stack at this end: every packet is built here. A TCP
 * flow has a handshake and data both ways; a UDP or ICMP flow has two requests and their answers,
 * so that the host sees two packets from this side. After that the flow is idle. With a rate, only
 * the first packet of each flow is sent, over and over.
 */
#include <netinet/ip_icmp.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stddef.h>

#include "raw.h"
#include "sockets.h"

#define TRIES 3
#define TRY_MS 150
#define GIVE_UP 512 /* flows without an answer in a row: the rest would have none either */
#define BATCH 64
#define BUFFER (8 << 20)
#define FIRST_SEQUENCE 1000
#define DATA_SIZE 2 /* one byte would look like a keep-alive */

const char tool_usage[] =
	"herd tcp|udp|icmp INTERFACE MAC SOURCE DESTINATION PORT COUNT [--sources N]\n"
	"     [--first N] [--at-once N] [--silent] [--close]\n"
	"     opens COUNT flows, prints how many were answered\n"
	"     --sources: N addresses, counted up from SOURCE\n"
	"     --first: the first source port, or echo identifier; each address uses all of them\n"
	"     --silent: sends nothing after the handshake, or after the first answer\n"
	"     --close: of TCP, the last packet is a FIN\n"
	"herd ... --seconds S --rate N [--destinations N]\n"
	"     only the first packet of each flow, N per second; --destinations: N addresses\n"
	"The IP stack of the interface must not answer: it does not have these addresses, or it\n"
	"drops what arrives. IPv4.\n";

enum state {
	STATE_UNUSED,
	STATE_ASKED,
	STATE_CONNECTED, /* the data, or the second request, is sent */
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
	uint32_t source; /* all in host byte order */
	uint32_t destination;
	int port;
	int count;
	int sources;
	int destinations;
	int first;
	int at_once;
	int rate;
	int seconds;
	bool silent;
	bool close;
};

static struct options options = {.sources = 1, .destinations = 1, .first = 1024, .at_once = 256};
static struct flow *flows;
static int *queue; /* of flows, in the order in which they are due */
static int fd, queue_head, queue_tail, answered, lost, lost_in_a_row;

static size_t payload_offset(void)
{
	if (options.protocol == IPPROTO_TCP)
		return offsetof(struct packet, tcp) + sizeof(struct tcphdr);
	return offsetof(struct packet, udp) + sizeof(struct udphdr);
}

/* Comes last. UDP over IPv4 needs no checksum. */
static void set_checksums(struct packet *packet, size_t size)
{
	size_t length = size - offsetof(struct packet, tcp);
	uint32_t sum = checksum_add(IPPROTO_TCP + (uint32_t)length, &packet->ip.saddr, 8);

	packet->ip.check = checksum_finish(checksum_add(0, &packet->ip, sizeof(packet->ip)));
	if (options.protocol == IPPROTO_TCP)
		packet->tcp.check = checksum_finish(checksum_add(sum, &packet->tcp, length));
	else if (options.protocol == IPPROTO_ICMP)
		packet->icmp.checksum = checksum_finish(checksum_add(0, &packet->icmp, length));
}

/* A packet of a flow with its addresses and ports only. */
static void plan_packet(struct packet *packet, int number)
{
	int span = 65536 - options.first;
	uint16_t source = htons((uint16_t)(options.first + number / options.sources % span));

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
		packet->tcp.dest = htons((uint16_t)options.port);
	}
}

/* Returns the size. */
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

/* A full queue loses the packet; it is sent again later. */
static void send_packet(const void *frame, size_t size)
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
	packet.tcp.fin = options.close && flows[number].state == STATE_ANSWERED;
	packet.tcp.window = htons(64240);
	packet.tcp.seq = htonl(sequence);
	packet.tcp.ack_seq = htonl(flows[number].acknowledged);
	send_packet(&packet, finish_packet(&packet, with_data));
}

static void send_request(int number)
{
	struct packet packet;
	size_t size;

	if (options.protocol == IPPROTO_TCP && flows[number].state == STATE_CONNECTED) {
		send_acknowledgment(number, true);
		return;
	}
	size = first_packet(&packet, number);
	send_packet(&packet, size);
}

static void ask(int number)
{
	if (flows[number].state == STATE_UNUSED)
		flows[number].state = STATE_ASKED;
	send_request(number);
	flows[number].tries++;
	flows[number].due = milliseconds_now() + patience(TRY_MS);
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

/* The answer to a datagram or an echo request */
static void take_answer(int number)
{
	if (options.silent || flows[number].state == STATE_CONNECTED) {
		conclude(number, STATE_ANSWERED);
	} else if (flows[number].state == STATE_ASKED) {
		flows[number].state = STATE_CONNECTED;
		send_request(number);
	}
}

/* The flow that the packet belongs to, or -1. */
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
	long now = milliseconds_now();

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

/* Sends up to a batch of the packets that are due; returns the number of the next one. */
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
	long begin = milliseconds_now(), end = begin + 1000L * options.seconds, now;
	int sent = 0;

	while ((now = milliseconds_now()) < end) {
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
	fd = open_packet_socket(options.interface, options.seconds ? 0 : ETH_P_IP);
	set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, BUFFER);
	set_option(fd, SOL_PACKET, PACKET_QDISC_BYPASS, 1);
}

static void parse_arguments(char **argv)
{
	if (strcmp(argv[0], "tcp") == 0)
		options.protocol = IPPROTO_TCP;
	else if (strcmp(argv[0], "udp") == 0)
		options.protocol = IPPROTO_UDP;
	else if (strcmp(argv[0], "icmp") == 0)
		options.protocol = IPPROTO_ICMP;
	else
		die_usage();
	options.interface = argv[1];
	parse_mac(argv[2], options.destination_mac);
	options.source = ntohl(parse_ipv4(argv[3]));
	options.destination = ntohl(parse_ipv4(argv[4]));
	options.port = parse_number(argv[5], 0, 65535);
	options.count = parse_number(argv[6], 1, 1 << 20);
}

int main(int argc, char **argv)
{
	static const struct tool_option names[] = {
		{"sources", .number = &options.sources, .low = 1, .high = 1 << 20},
		{"destinations", .number = &options.destinations, .low = 1, .high = 1 << 20},
		{"first", .number = &options.first, .low = 1, .high = 1 << 20},
		{"at-once", .number = &options.at_once, .low = 1, .high = 1 << 20},
		{"rate", .number = &options.rate, .low = 1, .high = 1 << 20},
		{"seconds", .number = &options.seconds, .low = 1, .high = 1 << 20},
		{"silent", .flag = &options.silent},
		{"close", .flag = &options.close},
		{NULL},
	};

	parse_options(argc, argv, names);
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
