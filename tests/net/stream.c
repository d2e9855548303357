/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * stream.c - numbered datagrams: many in flight at a time, to an echo server; or one way, so many a
 * second, to a receiver that tells what is lost, comes twice, or comes from somebody else.
 */
#include <signal.h>

#include "sockets.h"

#define TOGETHER 8    /* sent at once */
#define UNDER_WAY 64  /* in flight at most, so that no queue overflows */
#define PATIENCE 3000 /* milliseconds */

#define MAGIC 0x5354524dU
#define BATCH 64             /* datagrams in one call */
#define ANSWERED 1000        /* each so many'th is: then the connection is more than a flood */
#define BUFFER (1 << 29)     /* some seconds of datagrams, for a receiver that has to wait */
#define NUMBERS (1U << 27)   /* most datagrams of one stream */
#define DRAIN 500            /* milliseconds in which nothing comes are the end */
#define MOST_BEHIND_PARTS 10 /* of a second: what is missed for longer is never made up for */

const char tool_usage[] =
	"stream ask ADDRESS PORT MILLISECONDS [PAUSE]\n"
	"     PAUSE: milliseconds after every eight (default: 2); 0: as fast as they come back\n"
	"     prints sent=N lost=N late=N\n"
	"stream send ADDRESS PORT RATE\n"
	"     RATE datagrams a second, until SIGTERM; prints sent=N rate=N answers=N, the rate\n"
	"     that was reached\n"
	"stream receive PORT ADDRESS\n"
	"     until SIGTERM, and nothing comes any more; prints received=N twice=N strange=N\n"
	"     full=N: different ones; those that came again; those of another peer than ADDRESS,\n"
	"     or not from the port that the first one had; those for which the socket had no "
	"room\n";

struct stream {
	int fd;
	uint32_t sent;
	uint32_t received;
	uint32_t newest; /* one more than the highest number that came back */
	uint32_t late;
};

/* ADDRESS PORT */
static int open_towards(char **operands)
{
	struct sockaddr_in6 server = parse_address(operands[0], parse_port(operands[1]));
	int fd = open_dual_socket(SOCK_DGRAM, 0);

	set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, 1 << 20);
	if (connect_socket(fd, &server))
		die("connect");
	return fd;
}

static void send_some(struct stream *stream)
{
	for (int i = 0; i < TOGETHER && stream->sent - stream->newest < UNDER_WAY; i++) {
		if (send(stream->fd, &stream->sent, sizeof(stream->sent), 0) < 0)
			die("send");
		stream->sent++;
	}
}

static void receive_all(struct stream *stream)
{
	uint32_t number;

	while (recv(stream->fd, &number, sizeof(number), MSG_DONTWAIT) == sizeof(number)) {
		stream->received++;
		if (number < stream->newest)
			stream->late++;
		else
			stream->newest = number + 1;
	}
}

/* False: nothing arrived for PATIENCE milliseconds. */
static bool await_some(const struct stream *stream)
{
	return has_received(stream->fd, patience(PATIENCE));
}

static volatile sig_atomic_t ended;

static void end(int signal)
{
	(void)signal;
	ended = 1;
}

struct datagram {
	uint32_t magic;
	uint32_t number;
};

/* Datagrams of one call. */
struct batch {
	struct mmsghdr messages[BATCH];
	struct iovec data[BATCH];
	struct datagram datagrams[BATCH];
	struct sockaddr_in6 from[BATCH];
	char control[BATCH][CMSG_SPACE(sizeof(uint32_t))];
};

static struct batch batch;

static void batch_prepare(bool receives)
{
	for (int i = 0; i < BATCH; i++) {
		struct msghdr *header = &batch.messages[i].msg_hdr;

		batch.data[i] = (struct iovec){&batch.datagrams[i], sizeof(batch.datagrams[i])};
		*header = (struct msghdr){.msg_iov = &batch.data[i], .msg_iovlen = 1};
		if (!receives)
			continue;
		header->msg_name = &batch.from[i];
		header->msg_namelen = sizeof(batch.from[i]);
		header->msg_control = batch.control[i];
		header->msg_controllen = sizeof(batch.control[i]);
	}
}

static uint32_t send_batch(int fd, uint32_t number, uint32_t count)
{
	int sent;

	for (uint32_t i = 0; i < count; i++)
		batch.datagrams[i] = (struct datagram){MAGIC, number + i};
	sent = sendmmsg(fd, batch.messages, count, 0);
	if (sent < 0 && errno != ENOBUFS && errno != EINTR)
		die("sendmmsg");
	return sent < 0 ? 0 : (uint32_t)sent;
}

static int command_send(char **operands)
{
	int fd = open_towards(operands), rate = parse_number(operands[2], 1, 10000000);
	double begin = seconds_now(), since = begin, due;
	uint32_t sent = 0, answers = 0, made_up = 0, number;

	signal(SIGTERM, end);
	batch_prepare(false);
	while (!ended && sent < NUMBERS - BATCH) {
		due = (seconds_now() - since) * rate - made_up;
		if (due > (double)rate / MOST_BEHIND_PARTS) {
			since = seconds_now();
			made_up = 0;
			continue;
		}
		if (due >= 1) {
			number = send_batch(fd, sent, due < BATCH ? (uint32_t)due : BATCH);
			sent += number;
			made_up += number;
		} else {
			sleep_milliseconds(1);
		}
		while (recv(fd, &number, sizeof(number), MSG_DONTWAIT) == sizeof(number))
			answers++;
	}
	printf("sent=%u rate=%.0f answers=%u\n", sent, sent / (seconds_now() - begin), answers);
	return 0;
}

/* What a receiver has seen. */
struct seen {
	struct sockaddr_in6 peer; /* port 0: of the first one */
	uint32_t received, twice, strange;
	uint32_t full; /* as the socket counts it, with the last datagram */
};

static bool is_strange(struct seen *seen, const struct sockaddr_in6 *from,
		       const struct datagram *datagram, size_t length)
{
	if (!seen->peer.sin6_port)
		seen->peer.sin6_port = from->sin6_port;
	return memcmp(&from->sin6_addr, &seen->peer.sin6_addr, sizeof(from->sin6_addr)) != 0 ||
	       from->sin6_port != seen->peer.sin6_port || length != sizeof(*datagram) ||
	       datagram->magic != MAGIC || datagram->number >= NUMBERS;
}

static void note(struct seen *seen, const struct mmsghdr *message, const struct datagram *datagram)
{
	static uint8_t bits[NUMBERS / 8];
	const struct cmsghdr *control = CMSG_FIRSTHDR(&message->msg_hdr);
	uint8_t bit = (uint8_t)(1 << datagram->number % 8);

	if (control && control->cmsg_level == SOL_SOCKET && control->cmsg_type == SO_RXQ_OVFL)
		memcpy(&seen->full, CMSG_DATA(control), sizeof(seen->full));
	if (is_strange(seen, message->msg_hdr.msg_name, datagram, message->msg_len)) {
		seen->strange++;
	} else if (bits[datagram->number / 8] & bit) {
		seen->twice++;
	} else {
		bits[datagram->number / 8] |= bit;
		seen->received++;
	}
}

/* -1: nothing is there. */
static int receive_batch(int fd, struct seen *seen)
{
	int count;

	batch_prepare(true);
	count = recvmmsg(fd, batch.messages, BATCH, MSG_DONTWAIT, NULL);
	for (int i = 0; i < count; i++) {
		note(seen, &batch.messages[i], &batch.datagrams[i]);
		if (batch.datagrams[i].number % ANSWERED == 0)
			send_to(fd, &batch.datagrams[i].number, sizeof(batch.datagrams[i].number),
				&batch.from[i]);
	}
	return count;
}

static int command_receive(char **operands)
{
	int fd = open_bound_socket(SOCK_DGRAM, parse_port(operands[0]));
	struct seen seen = {.peer = parse_address(operands[1], 0)};
	bool more;

	signal(SIGTERM, end);
	set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, BUFFER);
	set_option(fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
	do {
		more = has_received(fd, patience(DRAIN));
		while (receive_batch(fd, &seen) > 0)
			;
	} while (more || !ended);
	printf("received=%u twice=%u strange=%u full=%u\n", seen.received, seen.twice, seen.strange,
	       seen.full);
	return 0;
}

static int command_ask(char **operands)
{
	struct stream stream = {.fd = open_towards(operands)};
	long until = milliseconds_now() + parse_number(operands[2], 1, 600000);
	int pause = operands[3] ? parse_number(operands[3], 0, 1000) : 2;

	while (milliseconds_now() < until) {
		send_some(&stream);
		if (stream.sent - stream.newest == UNDER_WAY && !await_some(&stream))
			break;
		receive_all(&stream);
		if (pause)
			sleep_milliseconds(pause);
	}
	while (stream.received < stream.sent && await_some(&stream))
		receive_all(&stream);
	printf("sent=%u lost=%u late=%u\n", stream.sent, stream.sent - stream.received,
	       stream.late);
	return stream.received != stream.sent;
}

int main(int argc, char **argv)
{
	static const struct tool_command commands[] = {
		{"ask", 3, 4, command_ask},
		{"send", 3, 3, command_send},
		{"receive", 2, 2, command_receive},
		{NULL},
	};

	return run_command(argc - 1, argv + 1, commands);
}
