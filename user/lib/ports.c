/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ports.c - the words for protocols and ports. */
#include "lib/ports.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct {
	uint8_t protocol;
	const char *word;
	bool has_ports; /* or an identifier in their place */
} protocols[] = {
	{PROTOCOL_TCP, "tcp", true},       {PROTOCOL_UDP, "udp", true},
	{PROTOCOL_SCTP, "sctp", true},     {PROTOCOL_ICMP, "icmp", true},
	{PROTOCOL_ICMPV6, "icmpv6", true}, {PROTOCOL_UDPLITE, "udplite", true},
	{IPPROTO_GRE, "gre", false},       {IPPROTO_ESP, "esp", false},
};

#define PROTOCOL_COUNT (sizeof(protocols) / sizeof(protocols[0]))

const char *const mapped_protocols[] = {"tcp", "udp", "sctp", NULL};

const char *protocol_word(uint8_t protocol)
{
	static char numbers[UINT8_MAX + 1][sizeof("255")];

	for (size_t i = 0; i < PROTOCOL_COUNT; i++)
		if (protocols[i].protocol == protocol)
			return protocols[i].word;
	snprintf(numbers[protocol], sizeof(numbers[protocol]), "%u", protocol);
	return numbers[protocol];
}

/* with_ports: only a protocol that has them */
static enum protocol parse(const char *word, bool with_ports)
{
	for (size_t i = 0; i < PROTOCOL_COUNT; i++)
		if (!strcmp(protocols[i].word, word) && (protocols[i].has_ports || !with_ports))
			return (enum protocol)protocols[i].protocol;
	return (enum protocol)0;
}

enum protocol protocol_parse(const char *word)
{
	return parse(word, false);
}

enum protocol protocol_parse_of_port(const char *word)
{
	return parse(word, true);
}

/* At most five digits; 0: not a port. */
static __u16 parse_port(const char **text)
{
	size_t digits = strspn(*text, "0123456789");
	unsigned int port = 0;

	if (digits > 5)
		return 0;
	for (; digits; digits--)
		port = port * 10 + (unsigned int)(*(*text)++ - '0');
	return port <= UINT16_MAX ? (__u16)port : 0;
}

const char *port_range_parse(const char *text, struct port_range *range)
{
	range->first = range->last = parse_port(&text);
	if (range->first && *text == '-') {
		text++;
		range->last = parse_port(&text);
	}
	return range->first && range->last ? text : NULL;
}
