/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * names.c - a server of names (RFC 1035) over UDP: one question in, one answer out.
 */
#include <strings.h>

#include "sockets.h"

#define HEADER 12
#define MESSAGE 512
#define TYPE_AAAA 28

const char tool_usage[] =
	"names ADDRESS NAME=ADDRESS...   serves at port 53 in the background, and prints its pid; "
	"of\n"
	"                                other names it says that there are none\n";

/* Reads the question's name as text. Returns where its type stands, or 0. */
static size_t read_name(const uint8_t *message, size_t length, char name[MESSAGE])
{
	size_t at = HEADER, written = 0;

	while (at < length && message[at]) {
		size_t label = message[at++];

		if (at + label + 5 > length)
			return 0;
		if (written)
			name[written++] = '.';
		memcpy(name + written, message + at, label);
		written += label;
		at += label;
	}
	name[written] = '\0';
	return at + 5 <= length ? at + 1 : 0;
}

/* Adds a record of this address behind the question; the name is the question's (a pointer). */
static size_t add_record(uint8_t *message, size_t at, const char *address, bool ipv6)
{
	const uint8_t record[] = {0xc0, HEADER, 0, ipv6 ? TYPE_AAAA : 1, 0, 1, 0, 0,
				  0,    60,     0, ipv6 ? 16 : 4};

	memcpy(message + at, record, sizeof(record));
	if (inet_pton(ipv6 ? AF_INET6 : AF_INET, address, message + at + sizeof(record)) != 1)
		return at;
	message[7]++;
	return at + sizeof(record) + (ipv6 ? 16 : 4);
}

static size_t answer(uint8_t *message, size_t length, char **known)
{
	char name[MESSAGE];
	size_t at = length < HEADER ? 0 : read_name(message, length, name), end = at + 4;
	bool is_known = false;

	if (!at)
		return 0;
	message[2] |= 0x80;
	memset(message + 6, 0, 6);
	for (; *known; known++) {
		size_t size = strcspn(*known, "=");

		if (strlen(name) != size || strncasecmp(name, *known, size) != 0)
			continue;
		is_known = true;
		end = add_record(message, end, *known + size + 1, message[at + 1] == TYPE_AAAA);
	}
	message[3] = is_known ? 0x80 : 0x83; /* recursion is available; no such name */
	return end;
}

int main(int argc, char **argv)
{
	struct sockaddr_in6 local, client;
	uint8_t message[MESSAGE + 64];
	int fd = open_dual_socket(SOCK_DGRAM, 0);

	if (argc < 3)
		die_usage();
	local = parse_address(argv[1], 53);
	bind_socket(fd, &local);
	go_on_as_child();
	for (;;) {
		ssize_t length = receive_from(fd, message, MESSAGE, &client);
		size_t end = length < 0 ? 0 : answer(message, (size_t)length, argv + 2);

		if (end)
			send_to(fd, message, end, &client);
	}
}
