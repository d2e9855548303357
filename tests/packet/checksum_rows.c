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

/* The port of the side that begins is filled in by the test. */
static const struct pair pairs[] = {
	{"TCP", FROM_UPLINK, TCP(v4_client, 0, v4_host, 8080, SYN),
	 TCP(v4_client, 0, v4_container_one, 80, SYN)},
	{"UDP", FROM_UPLINK, UDP(v4_client, 0, v4_host, 8080),
	 UDP(v4_client, 0, v4_container_one, 80)},
	{"UDP without a checksum", FROM_UPLINK,
	 UDP(v4_client, 0, v4_host, 8080, .without_checksum = true),
	 UDP(v4_client, 0, v4_container_one, 80, .without_checksum = true)},
	{"TCP over IPv6", FROM_UPLINK, TCP(v6_client, 0, v6_host, 8080, SYN),
	 TCP(v6_client, 0, v6_container_one, 80, SYN)},
	{"UDP over IPv6", FROM_UPLINK, UDP(v6_client, 0, v6_host, 8080),
	 UDP(v6_client, 0, v6_container_one, 80)},
	{"masqueraded TCP", TO_UPLINK, TCP(v4_container_one, 0, v4_server, 443, SYN),
	 TCP(v4_host, 0, v4_server, 443, SYN)},
	{"masqueraded UDP", TO_UPLINK, UDP(v4_container_one, 0, v4_server, 53),
	 UDP(v4_host, 0, v4_server, 53)},
	{"masqueraded UDP without a checksum", TO_UPLINK,
	 UDP(v4_container_one, 0, v4_server, 53, .without_checksum = true),
	 UDP(v4_host, 0, v4_server, 53, .without_checksum = true)},
	{"masqueraded TCP over IPv6", TO_UPLINK, TCP(v6_container_one, 0, v6_server, 443, SYN),
	 TCP(v6_host, 0, v6_server, 443, SYN)},
	{"masqueraded UDP over IPv6", TO_UPLINK, UDP(v6_container_one, 0, v6_server, 53),
	 UDP(v6_host, 0, v6_server, 53)},
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
