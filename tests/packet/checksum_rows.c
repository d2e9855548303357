/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* checksum_rows.c - many packets, including those whose checksum becomes 0 or all ones. */
#include <stdio.h>

#include "row.h"

#define ORDINARY 64 /* one in so many source ports is tried, whatever the checksum */

struct pair {
	const char *says;
	enum hook hook;
	struct packet in;
	struct packet out;
};

/* n: of the version of IP. The port of the side that begins is filled in by the test. */
#define REQUEST(PROTOCOL, n, ...) \
	FROM_UPLINK, PROTOCOL(v##n##_client, 0, v##n##_host, 8080, ##__VA_ARGS__), \
		PROTOCOL(v##n##_client, 0, v##n##_container_one, 80, ##__VA_ARGS__)
#define QUERY(PROTOCOL, n, port, ...) \
	TO_UPLINK, PROTOCOL(v##n##_container_one, 0, v##n##_server, port, ##__VA_ARGS__), \
		PROTOCOL(v##n##_host, 0, v##n##_server, port, ##__VA_ARGS__)

static const struct pair pairs[] = {
	{"TCP", REQUEST(TCP, 4, SYN)},
	{"TCP over IPv6", REQUEST(TCP, 6, SYN)},
	{"UDP", REQUEST(UDP, 4)},
	{"UDP over IPv6", REQUEST(UDP, 6)},
	{"UDP without a checksum", REQUEST(UDP, 4, .without_checksum = true)},
	{"masqueraded TCP", QUERY(TCP, 4, 443, SYN)},
	{"masqueraded TCP over IPv6", QUERY(TCP, 6, 443, SYN)},
	{"masqueraded UDP", QUERY(UDP, 4, 53)},
	{"masqueraded UDP over IPv6", QUERY(UDP, 6, 53)},
	{"masqueraded UDP without a checksum", QUERY(UDP, 4, 53, .without_checksum = true)},
	{"masqueraded ping over IPv6", TO_UPLINK, PING6(v6_container_one, v6_server, 0),
	 PING6(v6_host, v6_server, 0)},
};

static unsigned int checksum_of(const struct frame *frame)
{
	size_t at = frame->transport;

	at += frame->protocol == IPPROTO_TCP ? 16 : frame->protocol == IPPROTO_UDP ? 6 : 2;
	return frame->bytes[at] << 8 | frame->bytes[at + 1];
}

static bool is_extreme(const struct frame *frame)
{
	unsigned int checksum = checksum_of(frame);

	return checksum <= 1 || checksum >= 0xfffe;
}

/* A masqueraded flow would get another port. */
static bool is_published(int port)
{
	return port == 8080 || port == 7070 || port == 9090 || port == 4444 || port == 6666 ||
	       port == 5050;
}

static bool check_port(const struct pair *pair, int port, int *extremes)
{
	struct packet in = pair->in, out = pair->out;
	struct frame before, expected, got;
	int verdict;

	in.from_port = port;
	out.from_port = port;
	row_build(&before, &in, pair->hook, UPLINK);
	row_build(&expected, &out, pair->hook, UPLINK);
	if (is_published(port))
		return true;
	if (port % ORDINARY &&
	    (in.without_checksum || (!is_extreme(&before) && !is_extreme(&expected))))
		return true;
	*extremes += is_extreme(&expected);
	got = before;
	verdict =
		fixture_run(pair->hook, UPLINK, pair->hook == FROM_UPLINK ? UPLINK : BRIDGE, &got);
	if (verdict == -1 && frame_equal(&expected, &got))
		return true;
	row_fail("from port %d: verdict %d, the packet differs", port, verdict);
	frame_print_difference(&expected, &got);
	return false;
}

static void run_pair(const struct pair *pair, const char *state)
{
	char says[120];
	int extremes = 0;

	snprintf(says, sizeof(says), "checksums of many packets, 0 and ffff too: %s%s", pair->says,
		 state);
	row_begin(says);
	fixture_reset();
	fixture_set_masquerade_ports(1, 65535); /* so that all are kept */
	for (int port = 1; port <= 65535; port++)
		if (!check_port(pair, port, &extremes))
			break;
	if (extremes == 0 && !pair->in.without_checksum)
		row_fail("no packet's checksum came out as 0 or ffff");
	row_end();
}

void checksum_rows(void)
{
	host_close_sockets();
	for (int complete = 0; complete <= 1; complete++) {
		if (!fixture_set_checksum_complete(complete))
			break;
		for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
			run_pair(&pairs[i], complete ? ", summed by a network card" : "");
	}
	fixture_set_checksum_complete(false);
}
