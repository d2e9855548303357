/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* lifetime_rows.c - flows that are void, idle, or have lost a half. */
#include "row.h"

/* Longer than any time-out of a half-open or a UDP flow, shorter than TCP's. */
#define IDLE 1000

/* client:40000 -> host:8080, once the port of container two */
static const struct entry mapped_to_two[] = {MAPPED(ANSWERED, IPPROTO_TCP, v4_client, 40000,
						    v4_host, 8080, v4_container_two, 33, 40000)};
static const struct entry mapped_udp_to_two[] = {
	MAPPED(ANSWERED, IPPROTO_UDP, v4_client, 5000, v4_host, 8080, v4_container_two, 33, 5000)};
static const struct entry half_open_to_two[] = {
	MAPPED(NEW, IPPROTO_UDP, v4_client, 5000, v4_host, 8080, v4_container_two, 33, 5000)};
static const struct entry mapped_to_one[] = {MAPPED(ANSWERED, IPPROTO_TCP, v4_client, 40000,
						    v4_host, 8080, v4_container_one, 80, 40000)};
static const struct entry masqueraded_two[] = {
	MASQUERADED(NEW, IPPROTO_UDP, v4_container_two, 21000, v4_server, 53, v4_host, 21000)};
static const struct entry masqueraded_one[] = {MASQUERADED(ANSWERED, IPPROTO_TCP, v4_container_one,
							   40000, v4_server, 443, v4_host, 23456)};

static void given_older_generation(void)
{
	fixture_put_pair(mapped_to_two, TWO, true, 0, STATE_ESTABLISHED);
}

static void given_older_udp(void)
{
	fixture_put_pair(mapped_udp_to_two, TWO, true, 0, STATE_ESTABLISHED);
}

static void given_older_half_open(void)
{
	fixture_put_pair(half_open_to_two, TWO, true, 0, STATE_NEW);
}

static void given_older_masquerade(void)
{
	fixture_set_masquerade_ports(21000, 21000);
	fixture_put_pair(masqueraded_two, TWO, true, 0, STATE_NEW);
}

static void given_idle_masquerade(void)
{
	fixture_set_masquerade_ports(21000, 21000);
	fixture_put_pair(masqueraded_two, TWO, false, IDLE, STATE_NEW);
}

static void given_fresh_masquerade(void)
{
	fixture_set_masquerade_ports(21000, 21000);
	fixture_put_pair(masqueraded_two, TWO, false, 0, STATE_NEW);
}

static void given_renewed(void)
{
	fixture_renew(ONE);
}

static void given_idle_udp(void)
{
	fixture_put_pair(mapped_udp_to_two, TWO, false, IDLE, STATE_ESTABLISHED);
}

static void given_idle_half_open(void)
{
	fixture_put_pair(half_open_to_two, TWO, false, IDLE, STATE_NEW);
}

static void given_idle_tcp(void)
{
	fixture_put_pair(mapped_to_two, TWO, false, IDLE, STATE_ESTABLISHED);
}

static void given_idle_closing_tcp(void)
{
	fixture_put_pair(mapped_to_two, TWO, false, IDLE, STATE_CLOSING);
}

static void given_idle_ping(void)
{
	static const struct entry pair[] = {
		MASQUERADED(ANSWERED, IPPROTO_ICMP, v4_container_two, 5, v4_server, 0, v4_host, 5)};

	fixture_put_pair(pair, TWO, false, IDLE, STATE_ESTABLISHED);
}

#define STALE_TWO_UDP(table) \
	ENTRY(table, DIRECTION_OUT, IPPROTO_UDP, v4_container_two, 33, v4_client, 5000, v4_host, \
	      8080, 5000, FLOW_MAPPING, true)

static const struct row void_rows[] = {
	{.says = "[i06] a flow of an older generation is a miss: the mapping decides",
	 .given = given_older_udp,
	 AT(FROM_UPLINK, UPLINK),
	 .in = UDP(v4_client, 5000, v4_host, 8080),
	 .out = UDP(v4_client, 5000, v4_container_one, 80),
	 .flows = {MAPPED(NEW, IPPROTO_UDP, v4_client, 5000, v4_host, 8080, v4_container_one, 80,
			  5000),
		   ENTRY(ANSWERED, DIRECTION_IN, IPPROTO_UDP, v4_client, 5000, v4_host, 8080,
			 v4_container_two, 33, 5000, FLOW_MAPPING, false),
		   STALE_TWO_UDP(ANSWERED)}},
	{.says = "[i06] the new container's reply",
	 .then = true,
	 AT(TO_UPLINK, UPLINK),
	 .in = UDP(v4_container_one, 80, v4_client, 5000),
	 .out = UDP(v4_host, 8080, v4_client, 5000)},
	{.says = "[i06] and the next question replace what was left of it",
	 .then = true,
	 AT(FROM_UPLINK, UPLINK),
	 .in = UDP(v4_client, 5000, v4_host, 8080),
	 .out = UDP(v4_client, 5000, v4_container_one, 80),
	 .flows = {MAPPED(ANSWERED, IPPROTO_UDP, v4_client, 5000, v4_host, 8080, v4_container_one,
			  80, 5000),
		   STALE_TWO_UDP(ANSWERED)}},
	{.says = "[i06] a half-open flow of an older generation is a miss",
	 .given = given_older_half_open,
	 AT(FROM_UPLINK, UPLINK),
	 .in = UDP(v4_client, 5000, v4_host, 8080),
	 .out = UDP(v4_client, 5000, v4_container_one, 80),
	 .flows = {MAPPED(NEW, IPPROTO_UDP, v4_client, 5000, v4_host, 8080, v4_container_one, 80,
			  5000),
		   STALE_TWO_UDP(NEW)}},
	{.says = "[i06] a reply of an older generation is masqueraded like anything new",
	 .given = given_older_generation,
	 AT(TO_UPLINK, UPLINK),
	 .in = TCP(v4_container_two, 33, v4_client, 40000, ACK),
	 .out = TCP(v4_host, CHOSEN, v4_client, 40000, ACK),
	 .flows = {MASQUERADED(NEW, IPPROTO_TCP, v4_container_two, 33, v4_client, 40000, v4_host,
			       CHOSEN),
		   ENTRY(ANSWERED, DIRECTION_IN, IPPROTO_TCP, v4_client, 40000, v4_host, 8080,
			 v4_container_two, 33, 40000, FLOW_MAPPING, false),
		   ENTRY(ANSWERED, DIRECTION_OUT, IPPROTO_TCP, v4_container_two, 33, v4_client,
			 40000, v4_host, 8080, 40000, FLOW_MAPPING, true)}},
	{.says = "[i06] a masquerade port of an older generation is free",
	 .given = given_older_masquerade,
	 AT(TO_UPLINK, UPLINK),
	 .in = UDP(v4_container_one, 21000, v4_server, 53),
	 .out = UDP(v4_host, 21000, v4_server, 53),
	 .flows = {MASQUERADED(NEW, IPPROTO_UDP, v4_container_one, 21000, v4_server, 53, v4_host,
			       21000),
		   ENTRY(NEW, DIRECTION_OUT, IPPROTO_UDP, v4_container_two, 21000, v4_server, 53,
			 v4_host, 21000, 53, FLOW_MASQUERADE, false)}},
	{.says = "[i06] a mapped flow",
	 AT(FROM_UPLINK, UPLINK),
	 .in = UDP(v4_client, 5000, v4_host, 8080),
	 .out = UDP(v4_client, 5000, v4_container_one, 80),
	 .flows = {MAPPED(NEW, IPPROTO_UDP, v4_client, 5000, v4_host, 8080, v4_container_one, 80,
			  5000)}},
	{.says = "[i06] is void at once when its container is added anew",
	 .then = true,
	 .given = given_renewed,
	 AT(FROM_UPLINK, UPLINK),
	 .in = UDP(v4_client, 5000, v4_host, 8080)},
};

static const struct row idle_rows[] = {
	{.says = "an idle UDP flow is a miss",
	 .given = given_idle_udp,
	 AT(FROM_UPLINK, UPLINK),
	 .in = UDP(v4_client, 5000, v4_host, 8080),
	 .out = UDP(v4_client, 5000, v4_container_one, 80),
	 .flows = {MAPPED(NEW, IPPROTO_UDP, v4_client, 5000, v4_host, 8080, v4_container_one, 80,
			  5000),
		   ENTRY(ANSWERED, DIRECTION_IN, IPPROTO_UDP, v4_client, 5000, v4_host, 8080,
			 v4_container_two, 33, 5000, FLOW_MAPPING, false),
		   STALE_TWO_UDP(ANSWERED)}},
	{.says = "an idle half-open flow is a miss",
	 .given = given_idle_half_open,
	 AT(FROM_UPLINK, UPLINK),
	 .in = UDP(v4_client, 5000, v4_host, 8080),
	 .out = UDP(v4_client, 5000, v4_container_one, 80),
	 .flows = {MAPPED(NEW, IPPROTO_UDP, v4_client, 5000, v4_host, 8080, v4_container_one, 80,
			  5000),
		   STALE_TWO_UDP(NEW)}},
	{.says = "an idle ping is a miss",
	 .given = given_idle_ping,
	 AT(FROM_UPLINK, UPLINK),
	 .in = PONG4(v4_server, v4_host, 5),
	 .flows = {MASQUERADED(ANSWERED, IPPROTO_ICMP, v4_container_two, 5, v4_server, 0, v4_host,
			       5)}},
	{.says = "an established TCP flow as idle as that still lives",
	 .given = given_idle_tcp,
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_host, 8080, ACK),
	 .out = TCP(v4_client, 40000, v4_container_two, 33, ACK),
	 .flows = {MAPPED(ANSWERED, IPPROTO_TCP, v4_client, 40000, v4_host, 8080, v4_container_two,
			  33, 40000)},
	 .counts = {"rewritten_destination"}},
	{.says = "a closed TCP flow as idle as that is a miss",
	 .given = given_idle_closing_tcp,
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_host, 8080, SYN),
	 .out = TCP(v4_client, 40000, v4_container_one, 80, SYN),
	 .flows = {MAPPED(NEW, IPPROTO_TCP, v4_client, 40000, v4_host, 8080, v4_container_one, 80,
			  40000),
		   ENTRY(ANSWERED, DIRECTION_IN, IPPROTO_TCP, v4_client, 40000, v4_host, 8080,
			 v4_container_two, 33, 40000, FLOW_MAPPING, false, .state = STATE_CLOSING),
		   ENTRY(ANSWERED, DIRECTION_OUT, IPPROTO_TCP, v4_container_two, 33, v4_client,
			 40000, v4_host, 8080, 40000, FLOW_MAPPING, true, .state = STATE_CLOSING)}},
	{.says = "an idle flow's masquerade port is free",
	 .given = given_idle_masquerade,
	 AT(TO_UPLINK, UPLINK),
	 .in = UDP(v4_container_one, 21000, v4_server, 53),
	 .out = UDP(v4_host, 21000, v4_server, 53),
	 .flows = {MASQUERADED(NEW, IPPROTO_UDP, v4_container_one, 21000, v4_server, 53, v4_host,
			       21000),
		   ENTRY(NEW, DIRECTION_OUT, IPPROTO_UDP, v4_container_two, 21000, v4_server, 53,
			 v4_host, 21000, 53, FLOW_MASQUERADE, false)}},
	{.says = "[i10] a fresh flow's is not",
	 .given = given_fresh_masquerade,
	 AT(TO_UPLINK, UPLINK),
	 .in = UDP(v4_container_one, 21000, v4_server, 53),
	 .verdict = DROPPED,
	 .flows = {MASQUERADED(NEW, IPPROTO_UDP, v4_container_two, 21000, v4_server, 53, v4_host,
			       21000)},
	 .counts = {"drop_no_tuple"}},
};

static void given_only_forward_half(void)
{
	fixture_put_pair(masqueraded_one, ONE, false, 30, STATE_ESTABLISHED);
	fixture_remove(&masqueraded_one[1]);
}

static void given_only_reverse_half(void)
{
	fixture_put_pair(masqueraded_one, ONE, false, 30, STATE_ESTABLISHED);
	fixture_remove(&masqueraded_one[0]);
}

static void given_only_request_half(void)
{
	fixture_put_pair(mapped_to_one, ONE, false, 30, STATE_ESTABLISHED);
	fixture_remove(&mapped_to_one[1]);
}

static void given_only_reply_half(void)
{
	fixture_put_pair(mapped_to_one, ONE, false, 30, STATE_ESTABLISHED);
	fixture_remove(&mapped_to_one[0]);
}

/* Used this very second, when nothing is refreshed, and with the container's own port. */
static void given_only_way_back(void)
{
	static const struct entry pair[] = {MASQUERADED(ANSWERED, IPPROTO_TCP, v4_container_one,
							23456, v4_server, 443, v4_host, 23456)};

	fixture_put_pair(pair, ONE, false, 0, STATE_ESTABLISHED);
	fixture_remove(&pair[0]);
}

static void given_lost_request_half(void)
{
	fixture_put_pair(mapped_to_one, ONE, false, 0, STATE_ESTABLISHED);
	fixture_remove(&mapped_to_one[0]);
}

#define MASQUERADED_ONE \
	MASQUERADED(ANSWERED, IPPROTO_TCP, v4_container_one, 40000, v4_server, 443, v4_host, 23456)
#define MAPPED_ONE \
	MAPPED(ANSWERED, IPPROTO_TCP, v4_client, 40000, v4_host, 8080, v4_container_one, 80, 40000)

#define WAY_OUT(table) \
	ENTRY(table, DIRECTION_OUT, IPPROTO_TCP, v4_container_one, 23456, v4_server, 443, v4_host, \
	      23456, 443, FLOW_MASQUERADE, false)
#define WAY_BACK \
	ENTRY(ANSWERED, DIRECTION_IN, IPPROTO_TCP, v4_server, 443, v4_host, 23456, \
	      v4_container_one, 23456, 443, FLOW_MASQUERADE, true)
#define REQUEST_HALF(table) \
	ENTRY(table, DIRECTION_IN, IPPROTO_TCP, v4_client, 40000, v4_host, 8080, v4_container_one, \
	      80, 40000, FLOW_MAPPING, false)
#define REPLY_HALF \
	ENTRY(ANSWERED, DIRECTION_OUT, IPPROTO_TCP, v4_container_one, 80, v4_client, 40000, \
	      v4_host, 8080, 40000, FLOW_MAPPING, true)

static const struct row half_rows[] = {
	{.says = "[i05] the way out rebuilds the way back, with the same port",
	 .given = given_only_forward_half,
	 AT(TO_UPLINK, UPLINK),
	 .in = TCP(v4_container_one, 40000, v4_server, 443, ACK),
	 .out = TCP(v4_host, 23456, v4_server, 443, ACK),
	 .flows = {MASQUERADED_ONE},
	 .counts = {"flow_repaired"}},
	{.says = "[i05] the way back rebuilds the way out, with the same port",
	 .given = given_only_reverse_half,
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_server, 443, v4_host, 23456, ACK),
	 .out = TCP(v4_server, 443, v4_container_one, 40000, ACK),
	 .flows = {MASQUERADED_ONE},
	 .counts = {"flow_repaired"}},
	{.says = "[i05] a mapped request rebuilds its reply",
	 .given = given_only_request_half,
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_host, 8080, ACK),
	 .out = TCP(v4_client, 40000, v4_container_one, 80, ACK),
	 .flows = {MAPPED_ONE},
	 .counts = {"flow_repaired"}},
	{.says = "[i05] a mapped reply rebuilds its request",
	 .given = given_only_reply_half,
	 AT(TO_UPLINK, UPLINK),
	 .in = TCP(v4_container_one, 80, v4_client, 40000, ACK),
	 .out = TCP(v4_host, 8080, v4_client, 40000, ACK),
	 .flows = {MAPPED_ONE},
	 .counts = {"flow_repaired"}},
	{.says = "[i05] a way out that is lost this very second finds its own port again",
	 .given = given_only_way_back,
	 AT(TO_UPLINK, UPLINK),
	 .in = TCP(v4_container_one, 23456, v4_server, 443, ACK),
	 .out = TCP(v4_host, 23456, v4_server, 443, ACK),
	 .flows = {WAY_OUT(NEW), WAY_BACK}},
	{.says = "[i05] and joins its other half with the next packet",
	 .then = true,
	 AT(TO_UPLINK, UPLINK),
	 .in = TCP(v4_container_one, 23456, v4_server, 443, ACK),
	 .out = TCP(v4_host, 23456, v4_server, 443, ACK),
	 .flows = {WAY_OUT(ANSWERED), WAY_BACK}},
	{.says = "[i05] a request that is lost this very second is rebuilt from the mapping",
	 .given = given_lost_request_half,
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_host, 8080, ACK),
	 .out = TCP(v4_client, 40000, v4_container_one, 80, ACK),
	 .flows = {REQUEST_HALF(NEW), REPLY_HALF}},
	{.says = "[i05] and joins its reply with the next packet",
	 .then = true,
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_host, 8080, ACK),
	 .out = TCP(v4_client, 40000, v4_container_one, 80, ACK),
	 .flows = {REQUEST_HALF(ANSWERED), REPLY_HALF}},
};

void lifetime_rows(void)
{
	ROWS_RUN(void_rows);
	ROWS_RUN(idle_rows);
	ROWS_RUN(half_rows);
}
