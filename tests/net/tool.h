/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tool.h - what the network tests' tools have in common: ending with a reason, and reading
 * their arguments. Every address of theirs is IPv6; IPv4 is v4-mapped (RFC 4291 2.5.5.2).
 */
#ifndef BPF_PORTMAP_TESTS_TOOL_H
#define BPF_PORTMAP_TESTS_TOOL_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXIT_USAGE 2
#define ENDPOINT_SIZE (INET6_ADDRSTRLEN + 9)

/* Each tool has its own. */
extern const char tool_usage[];

static inline _Noreturn void die(const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(errno));
	exit(EXIT_USAGE);
}

static inline _Noreturn void die_usage(void)
{
	fputs(tool_usage, stderr);
	exit(EXIT_USAGE);
}

static inline int parse_number(const char *text, int low, int high)
{
	char *end;
	long number = strtol(text, &end, 10);

	if (!*text || *end || number < low || number > high)
		die_usage();
	return (int)number;
}

/* How long to wait where a quiet machine would need so many milliseconds at most: SLOWER in the
 * environment says how many times as long everything takes here (tests/pace). */
static inline int patience(int milliseconds)
{
	const char *slower = getenv("SLOWER");

	return slower ? milliseconds * parse_number(slower, 1, 1000) : milliseconds;
}

static inline struct sockaddr_in6 parse_address(const char *text, int port)
{
	struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	char mapped[INET6_ADDRSTRLEN + 8];

	snprintf(mapped, sizeof(mapped), "%s%s", strchr(text, ':') ? "" : "::ffff:", text);
	if (inet_pton(AF_INET6, mapped, &address.sin6_addr) != 1) {
		fprintf(stderr, "%s: %s is no address\n", program_invocation_short_name, text);
		exit(EXIT_USAGE);
	}
	return address;
}

static inline bool is_ipv4(const struct sockaddr_in6 *address)
{
	return IN6_IS_ADDR_V4MAPPED(&address->sin6_addr);
}

/* address:port; text has room for ENDPOINT_SIZE. */
static inline const char *format_address(const struct sockaddr_in6 *address, char *text)
{
	char host[INET6_ADDRSTRLEN];

	if (is_ipv4(address))
		inet_ntop(AF_INET, &address->sin6_addr.s6_addr[12], host, sizeof(host));
	else
		inet_ntop(AF_INET6, &address->sin6_addr, host, sizeof(host));
	snprintf(text, ENDPOINT_SIZE, is_ipv4(address) ? "%s:%u" : "[%s]:%u", host,
		 ntohs(address->sin6_port));
	return text;
}

#endif
