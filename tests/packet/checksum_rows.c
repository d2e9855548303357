/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* checksum_rows.c - many packets, among them those whose checksum comes out as 0 or all ones. */
#include <stdio.h>

#include "row.h"

#define ORDINARY 64 /* one in so many source ports is tried, whatever its checksum */

struct pair {
	const char *says;
	struct packet in;
	struct packet out;
};

/* Only the client's port is missing. */
static const struct pair pairs[] = {
	{"TCP", TCP(v4_client, 0, v4_host, 8080, SYN),
	 TCP(v4_client, 0, v4_container_one, 80, SYN)},
	{"UDP", UDP(v4_client, 0, v4_host, 8080), UDP(v4_client, 0, v4_container_one, 80)},
	{"TCP over IPv6", TCP(v6_client, 0, v6_host, 8080, SYN),
	 TCP(v6_client, 0, v6_container_one, 80, SYN)},
	{"UDP over IPv6", UDP(v6_client, 0, v6_host, 8080),
	 UDP(v6_client, 0, v6_container_one, 80)},
};

static unsigned int checksum_of(const struct frame *frame)
{
	size_t at = frame->transport + (frame->protocol == IPPROTO_TCP ? 16 : 6);

	return frame->bytes[at] << 8 | frame->bytes[at + 1];
}

static bool is_extreme(const struct frame *frame)
{
	unsigned int checksum = checksum_of(frame);

	return checksum <= 1 || checksum >= 0xfffe;
}

static bool check_port(const struct pair *pair, int port, int *extremes)
{
	struct packet in = pair->in, out = pair->out;
	struct frame before, expected, got;
	int verdict;

	in.from_port = port;
	out.from_port = port;
	row_build(&before, &in, FROM_UPLINK, UPLINK);
	row_build(&expected, &out, FROM_UPLINK, UPLINK);
	if (port % ORDINARY && !is_extreme(&before) && !is_extreme(&expected))
		return true;
	*extremes += is_extreme(&expected);
	got = before;
	verdict = fixture_run(FROM_UPLINK, UPLINK, UPLINK, &got);
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

	snprintf(says, sizeof(says), "[i11] checksums of many packets, 0 and ffff too: %s%s",
		 pair->says, state);
	row_begin(says);
	fixture_reset();
	for (int port = 1; port <= 65535; port++)
		if (!check_port(pair, port, &extremes))
			break;
	if (extremes == 0)
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
