/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tcp_state_rows.c - the states of a TCP flow: FIN, valid and forged RST, a reused tuple. */
#include <linux/pkt_cls.h>

#include "row.h"

/* The client's and the container's initial sequence numbers */
#define CLIENT 1000
#define SERVER 0xfffffff0u /* wraps */

#define TO_HOST(flags, ...) TCP(v4_client, 40000, v4_host, 8080, flags, ##__VA_ARGS__)
#define TO_ONE(flags, ...) TCP(v4_client, 40000, v4_container_one, 80, flags, ##__VA_ARGS__)
#define BY_ONE(flags, ...) TCP(v4_container_one, 80, v4_client, 40000, flags, ##__VA_ARGS__)
#define BY_HOST(flags, ...) TCP(v4_host, 8080, v4_client, 40000, flags, ##__VA_ARGS__)

/* Flags; sequence and acknowledgment, counted from the initial numbers of sender and receiver;
 * bytes of payload */
#define NUMBERS(sequence_, acknowledgment_, payload_) \
	.sequence = (sequence_), .acknowledgment = (acknowledgment_), .payload = (payload_), \
	.empty = !(payload_)
#define CLIENT_SENDS(flags, sent, acknowledged, payload) \
	AT(FROM_UPLINK, UPLINK), \
		.in = TO_HOST(flags, NUMBERS(CLIENT + (sent), SERVER + (acknowledged), payload)), \
		.out = TO_ONE(flags, NUMBERS(CLIENT + (sent), SERVER + (acknowledged), payload))
#define CONTAINER_SENDS(flags, sent, acknowledged, payload) \
	AT(TO_UPLINK, UPLINK), \
		.in = BY_ONE(flags, NUMBERS(SERVER + (sent), CLIENT + (acknowledged), payload)), \
		.out = BY_HOST(flags, NUMBERS(SERVER + (sent), CLIENT + (acknowledged), payload))

#define FLOW_IN(state_) \
	.flows = {MAPPED(ANSWERED, IPPROTO_TCP, v4_client, 40000, v4_host, 8080, v4_container_one, \
			 80, 40000, .state = state_)}
#define FLOW_HALF_OPEN \
	.flows = {MAPPED(NEW, IPPROTO_TCP, v4_client, 40000, v4_host, 8080, v4_container_one, 80, \
			 40000)}

static void given_begun(void)
{
	row_send(FROM_UPLINK, UPLINK, &(const struct packet)TO_HOST(SYN, NUMBERS(CLIENT, 0, 0)));
}

static void given_half_open(void)
{
	given_begun();
	row_send(TO_UPLINK, UPLINK,
		 &(const struct packet)BY_ONE(SYN | ACK, NUMBERS(SERVER, CLIENT + 1, 0)));
}

static void given_connected(void)
{
	given_half_open();
	row_send(FROM_UPLINK, UPLINK,
		 &(const struct packet)TO_HOST(ACK, NUMBERS(CLIENT + 1, SERVER + 1, 0)));
}

static const struct entry record = MAPPED(ANSWERED, IPPROTO_TCP, v4_client, 40000, v4_host, 8080,
					  v4_container_one, 80, 40000, .owner = ONE);

/* The record has no sequence numbers. */
static void given_rebuilt(void)
{
	fixture_put(&record);
}

static void given_closed(void)
{
	given_connected();
	row_send(FROM_UPLINK, UPLINK,
		 &(const struct packet)TO_HOST(FIN | ACK, NUMBERS(CLIENT + 1, SERVER + 1, 0)));
	row_send(TO_UPLINK, UPLINK,
		 &(const struct packet)BY_ONE(FIN | ACK, NUMBERS(SERVER + 1, CLIENT + 2, 0)));
}

static void given_reset(void)
{
	given_connected();
	row_send(FROM_UPLINK, UPLINK,
		 &(const struct packet)TO_HOST(RST, NUMBERS(CLIENT + 1, 0, 0)));
}

static void given_of_host(void)
{
	row_send_of_host(TO_UPLINK, UPLINK,
			 &(const struct packet)TCP(v4_host, 8080, v4_server, 443, SYN,
						   NUMBERS(CLIENT, 0, 0)));
}

static void given_direct(void)
{
	const struct packet begin = TO_ONE(SYN, NUMBERS(CLIENT, 0, 0));

	row_send(FROM_UPLINK, UPLINK, &begin);
	row_send(TO_CONTAINER, BRIDGE, &begin);
}

static void given_forgotten(void)
{
	given_connected();
	fixture_remove(&record);
}

static const struct row closing_rows[] = {
	{.says = "a FIN of one side",
	 .given = given_connected,
	 CLIENT_SENDS(FIN | ACK, 1, 1, 0),
	 FLOW_IN(STATE_FIN)},
	{.then = "a retransmitted FIN is not taken for the other side's",
	 CLIENT_SENDS(FIN | ACK, 1, 1, 0)},
	{.then = "half-closed: data the other way still passes", CONTAINER_SENDS(ACK, 1, 2, 100)},
	{.then = "and is acknowledged", CLIENT_SENDS(ACK, 2, 101, 0)},
	{.then = "the other side's FIN closes",
	 CONTAINER_SENDS(FIN | ACK, 101, 2, 0),
	 FLOW_IN(STATE_CLOSING)},
	{.then = "the last ACK", CLIENT_SENDS(ACK, 2, 102, 0)},
	{.then = "[i04] [T14] a late RST is translated all the same",
	 CONTAINER_SENDS(RST, 102, 0, 0)},
	{.says = "the container closes first",
	 .given = given_connected,
	 CONTAINER_SENDS(FIN | ACK, 1, 1, 0),
	 FLOW_IN(STATE_FIN)},
	{.then = "then the client", CLIENT_SENDS(FIN | ACK, 1, 2, 0), FLOW_IN(STATE_CLOSING)},
	{.says = "both close at the same time: the client",
	 .given = given_connected,
	 CLIENT_SENDS(FIN | ACK, 1, 1, 0),
	 FLOW_IN(STATE_FIN)},
	{.then = "and the container, which has not seen that FIN",
	 CONTAINER_SENDS(FIN | ACK, 1, 1, 0),
	 FLOW_IN(STATE_CLOSING)},
	{.then = "both acknowledge: the client", CLIENT_SENDS(ACK, 2, 2, 0)},
	{.then = "and the container", CONTAINER_SENDS(ACK, 2, 2, 0)},
	{.says = "the packet that makes the flow assured has a FIN",
	 .given = given_half_open,
	 CLIENT_SENDS(FIN | ACK, 1, 1, 0),
	 FLOW_IN(STATE_FIN),
	 .counts = {"flow_promoted"}},
	{.then = "and the other side's FIN closes",
	 CONTAINER_SENDS(FIN | ACK, 1, 2, 0),
	 FLOW_IN(STATE_CLOSING)},
	{.says = "the container's FIN comes while the flow is half-open",
	 .given = given_half_open,
	 CONTAINER_SENDS(FIN | ACK, 1, 1, 0),
	 FLOW_HALF_OPEN},
	{.then = "and counts when it is assured", CLIENT_SENDS(ACK, 1, 2, 0), FLOW_IN(STATE_FIN)},
	{.says = "[i04] an ACK of data that the container has not sent leaves the flow half-open",
	 .given = given_half_open,
	 CLIENT_SENDS(ACK, 1, 0x20000, 0),
	 FLOW_HALF_OPEN},
	{.then = "so does one far behind what it sent", CLIENT_SENDS(ACK, 1, -0x20000, 0)},
	{.then = "so does a packet without ACK", CLIENT_SENDS(FIN, 1, 1, 0)},
	{.then = "a valid ACK after that makes the flow assured",
	 CLIENT_SENDS(ACK, 1, 1, 0),
	 FLOW_IN(STATE_ESTABLISHED),
	 .counts = {"flow_promoted"}},
	{.says = "[i04] a stray ACK to a mapped port", CLIENT_SENDS(ACK, 1, 1, 0), FLOW_HALF_OPEN},
	{.then = "is answered by an RST,", CONTAINER_SENDS(RST, 1, 0, 0), .no_flows = true},
	{.then = "and another one begins a flow that is half-open",
	 CLIENT_SENDS(ACK, 1, 1, 0),
	 FLOW_HALF_OPEN},
	{.says = "an RST does not make a half-open flow assured",
	 .given = given_half_open,
	 CLIENT_SENDS(RST, 1, 0, 0),
	 FLOW_HALF_OPEN},
};

static const struct row reset_rows[] = {
	{.says = "[T33] an RST with the sequence number that the container has acknowledged closes",
	 .given = given_connected,
	 CLIENT_SENDS(RST, 1, 0, 0),
	 FLOW_IN(STATE_CLOSING)},
	{.says = "[T33] an RST of the container with the number that the client has acknowledged "
		 "closes",
	 .given = given_connected,
	 CONTAINER_SENDS(RST | ACK, 1, 1, 0),
	 FLOW_IN(STATE_CLOSING)},
	{.says = "[T33] an RST one byte ahead is translated and changes nothing",
	 .given = given_connected,
	 CLIENT_SENDS(RST, 2, 0, 0),
	 FLOW_IN(STATE_ESTABLISHED)},
	{.then = "[T33] nor does an RST one byte behind", CLIENT_SENDS(RST, 0, 0, 0)},
	{.then = "[T33] nor does one of the container", CONTAINER_SENDS(RST, 2, 0, 0)},
	{.says = "data",
	 .given = given_connected,
	 CLIENT_SENDS(ACK, 1, 1, 10),
	 FLOW_IN(STATE_ESTABLISHED)},
	{.then = "[T33] an RST right after data that is not acknowledged yet closes",
	 CLIENT_SENDS(RST | ACK, 11, 1, 0),
	 FLOW_IN(STATE_CLOSING)},
	{.says = "forged data far from the client's sequence number",
	 .given = given_connected,
	 CLIENT_SENDS(ACK, 0x7000000, 1, 10),
	 FLOW_IN(STATE_ESTABLISHED)},
	{.then = "[T33] does not make an RST after it valid", CLIENT_SENDS(RST, 0x700000a, 0, 0)},
	{.says = "forged data near the client's number, with an impossible acknowledgment",
	 .given = given_connected,
	 CLIENT_SENDS(ACK, 500, 0x7000000, 10),
	 FLOW_IN(STATE_ESTABLISHED)},
	{.then = "[T33] does not either", CLIENT_SENDS(RST, 510, 0, 0)},
	{.says = "nor does a forged SYN near the client's number",
	 .given = given_connected,
	 CLIENT_SENDS(SYN, 500, 0, 0),
	 FLOW_IN(STATE_ESTABLISHED)},
	{.then = "[T33] an RST after that SYN", CLIENT_SENDS(RST, 501, 0, 0)},
	{.says = "[T33] a forged SYN",
	 .given = given_connected,
	 CLIENT_SENDS(SYN, 700000000, 0, 0),
	 FLOW_IN(STATE_ESTABLISHED)},
	{.then = "[T33] that the container answers with an ACK of the connection's own numbers",
	 CONTAINER_SENDS(ACK, 1, 1, 0)},
	{.then = "[T33] does not make an RST with the forger's number valid",
	 CLIENT_SENDS(RST, 700000001, 0, 0)},
	{.then = "[T33] nor one with an acknowledgment", CLIENT_SENDS(RST | ACK, 700000001, 1, 0)},
	{.then = "[T33] the forger's data does not change the numbers",
	 CLIENT_SENDS(ACK, 700000001, 1, 10)},
	{.then = "[T33] nor does it make an RST after it valid",
	 CLIENT_SENDS(RST, 700000011, 0, 0)},
	{.then = "[T33] the client's own RST closes",
	 CLIENT_SENDS(RST, 1, 0, 0),
	 FLOW_IN(STATE_CLOSING)},
	{.says = "[T33] a forged SYN-ACK that answers no SYN",
	 .given = given_connected,
	 CLIENT_SENDS(SYN | ACK, 700000000, 1, 0),
	 FLOW_IN(STATE_ESTABLISHED)},
	{.then = "[T33] does not make an RST with the forger's number valid",
	 CLIENT_SENDS(RST, 700000001, 0, 0)},
	{.says = "[T33] nor does a forged SYN-ACK of the container that answers none",
	 .given = given_connected,
	 CONTAINER_SENDS(SYN | ACK, 700000000, 1, 0),
	 FLOW_IN(STATE_ESTABLISHED)},
	{.then = "[T33] make an RST of the container valid", CONTAINER_SENDS(RST, 700000001, 0, 0)},
	{.says = "retransmitted data",
	 .given = given_connected,
	 CLIENT_SENDS(ACK, 1, 1, 10),
	 FLOW_IN(STATE_ESTABLISHED)},
	{.then = "a retransmitted part of it", CLIENT_SENDS(ACK, 1, 1, 5)},
	{.then = "[T33] does not move the last sequence number back", CLIENT_SENDS(RST, 6, 0, 0)},
	{.says = "a flow rebuilt in mid-connection has no numbers: any RST closes",
	 .given = given_rebuilt,
	 CLIENT_SENDS(RST, 77777, 0, 0),
	 FLOW_IN(STATE_CLOSING)},
};

static const struct row life_rows[] = {
	{.says = "[T33] an RST that the container did not accept: it answers",
	 .given = given_reset,
	 CONTAINER_SENDS(ACK, 1, 1, 0),
	 FLOW_IN(STATE_CLOSING)},
	{.then = "[T33] and the client goes on: the flow lives",
	 CLIENT_SENDS(ACK, 1, 1, 10),
	 FLOW_IN(STATE_ESTABLISHED)},
	{.says = "[T33] a keep-alive shows life too",
	 .given = given_reset,
	 CLIENT_SENDS(ACK, 0, 1, 0),
	 FLOW_IN(STATE_CLOSING)},
	{.then = "[T33] and its answer reopens the flow",
	 CONTAINER_SENDS(ACK, 1, 1, 0),
	 FLOW_IN(STATE_ESTABLISHED)},
	{.says = "after a valid RST data of the container that was on its way",
	 .given = given_reset,
	 CONTAINER_SENDS(ACK, 1, 1, 100),
	 FLOW_IN(STATE_CLOSING)},
	{.then = "and is answered by another RST", CLIENT_SENDS(RST, 1, 0, 0)},
	{.then = "nor does late data that the client sent before reopen the flow",
	 CLIENT_SENDS(ACK, -20, 1, 10)},
	{.says = "[T34] a SYN reuses a closed flow and its place",
	 .given = given_closed,
	 CLIENT_SENDS(SYN, 90000, 0, 0),
	 FLOW_IN(STATE_CLOSING)},
	{.then = "[T34] the SYN-ACK", CONTAINER_SENDS(SYN | ACK, 70000, 90001, 0)},
	{.then = "[T34] the ACK: established",
	 CLIENT_SENDS(ACK, 90001, 70001, 0),
	 FLOW_IN(STATE_ESTABLISHED)},
	{.then = "[T34] an RST with the old numbers changes nothing", CLIENT_SENDS(RST, 1, 0, 0)},
	{.then = "[T34] one of the container with the new numbers closes",
	 CONTAINER_SENDS(RST, 70001, 0, 0),
	 FLOW_IN(STATE_CLOSING)},
	{.says = "[T34] a SYN of the container reuses a closed flow too",
	 .given = given_closed,
	 CONTAINER_SENDS(SYN, 50000, 0, 0),
	 FLOW_IN(STATE_CLOSING)},
	{.then = "[T34] the client's SYN-ACK", CLIENT_SENDS(SYN | ACK, 60000, 50001, 0)},
	{.then = "[T34] the container's ACK: established",
	 CONTAINER_SENDS(ACK, 50001, 60001, 0),
	 FLOW_IN(STATE_ESTABLISHED)},
	{.says = "the client has lost its connection and begins another",
	 .given = given_connected,
	 CLIENT_SENDS(SYN, 800000000, 0, 0),
	 FLOW_IN(STATE_ESTABLISHED)},
	{.then = "which the container accepts",
	 CONTAINER_SENDS(SYN | ACK, 700000000, 800000001, 0)},
	{.then = "and the client acknowledges", CLIENT_SENDS(ACK, 800000001, 700000001, 0)},
	{.then = "[T33] an RST with the old numbers changes nothing", CLIENT_SENDS(RST, 1, 0, 0)},
	{.then = "[T33] one with the new numbers closes",
	 CLIENT_SENDS(RST, 800000001, 0, 0),
	 FLOW_IN(STATE_CLOSING)},
};

static const struct row late_rows[] = {
	{.says = "[T14] [i04] a late FIN without a record gets the host's address",
	 .given = given_forgotten,
	 LEAVES(BY_ONE(FIN | ACK)),
	 .out = TCP(v4_host, 80, v4_client, 40000, FIN | ACK),
	 .flows = {MASQUERADED(NEW, IPPROTO_TCP, v4_container_one, 80, v4_client, 40000, v4_host,
			       80)}},
	{.says = "[T14] [i04] and so does a late RST",
	 .given = given_forgotten,
	 LEAVES(BY_ONE(RST)),
	 .out = TCP(v4_host, 80, v4_client, 40000, RST),
	 .flows = {MASQUERADED(NEW, IPPROTO_TCP, v4_container_one, 80, v4_client, 40000, v4_host,
			       80)}},
};

/* Whoever knows the addresses can forge these, but does not know the numbers. */
static const struct row forged_rows[] = {
	{.says = "[T33] a FIN far from the client's number changes nothing",
	 .given = given_connected,
	 CLIENT_SENDS(FIN | ACK, 700000000, 1, 0),
	 FLOW_IN(STATE_ESTABLISHED)},
	{.then = "[T33] nor does one that acknowledges what the container has not sent",
	 CLIENT_SENDS(FIN | ACK, 1, 0x30000, 0)},
	{.then = "[T33] nor one far behind what it has acknowledged",
	 CLIENT_SENDS(FIN | ACK, 1, -0x30000, 0)},
	{.then = "[T33] nor one whose number is only roughly the client's",
	 CLIENT_SENDS(FIN | ACK, 0x30000, 1, 0)},
	{.says = "[T33] nor one of the container",
	 .given = given_connected,
	 CONTAINER_SENDS(FIN | ACK, 700000000, 1, 0),
	 FLOW_IN(STATE_ESTABLISHED)},
	{.says = "FIN without ACK, which nobody accepts, changes nothing",
	 .given = given_connected,
	 CLIENT_SENDS(FIN, 1, 0, 0),
	 FLOW_IN(STATE_ESTABLISHED)},
	{.then = "nor do SYN and FIN together", CLIENT_SENDS(SYN | FIN, 1, 0, 0)},
	{.then = "nor with ACK", CLIENT_SENDS(SYN | FIN | ACK, 1, 1, 0)},
	{.then = "nor no flag at all", CLIENT_SENDS(0, 1, 1, 10)},
	{.then = "the client's own FIN counts after all these",
	 CLIENT_SENDS(FIN | ACK, 1, 1, 0),
	 FLOW_IN(STATE_FIN)},
	{.says = "SYN and FIN together do not reuse a closed flow",
	 .given = given_closed,
	 CLIENT_SENDS(SYN | FIN, 90000, 0, 0),
	 FLOW_IN(STATE_CLOSING)},
	{.says = "forged data near the client's number that acknowledges too much",
	 .given = given_connected,
	 CLIENT_SENDS(ACK, 500, 0x30000, 10),
	 FLOW_IN(STATE_ESTABLISHED)},
	{.then = "[T33] does not make an RST after it valid", CLIENT_SENDS(RST, 510, 0, 0)},
	{.says = "after an RST the container answers",
	 .given = given_reset,
	 CONTAINER_SENDS(ACK, 1, 1, 0),
	 FLOW_IN(STATE_CLOSING)},
	{.then = "[T33] and a forged ACK does not reopen the flow",
	 CLIENT_SENDS(ACK, 700000000, 1, 0)},
	{.says = "a forged SYN on a closed flow",
	 .given = given_closed,
	 CLIENT_SENDS(SYN, 90000, 0, 0),
	 FLOW_IN(STATE_CLOSING)},
	{.then = "is answered,", CONTAINER_SENDS(SYN | ACK, 70000, 90001, 0)},
	{.then = "[T33] and an ACK of another number does not reopen it",
	 CLIENT_SENDS(ACK, 90001, 500000, 0)},
	{.says = "a forged FIN while the flow begins",
	 .given = given_begun,
	 CLIENT_SENDS(FIN | ACK, 700000000, 1, 0),
	 FLOW_HALF_OPEN},
	{.then = "and one of the other side", CONTAINER_SENDS(FIN | ACK, 0, 5000000, 0)},
	{.then = "a SYN-ACK that does not answer the SYN",
	 CONTAINER_SENDS(SYN | ACK, 3000, 5000000, 0)},
	{.then = "is no reply, so that what acknowledges it leaves the flow half-open",
	 CLIENT_SENDS(ACK, 1, 3001, 0)},
	{.then = "then the right one,", CONTAINER_SENDS(SYN | ACK, 0, 1, 0)},
	{.then = "and a forged SYN of the client", CLIENT_SENDS(SYN, 700000000, 0, 0)},
	{.then = "the flow is assured, and none of them has half-closed it",
	 CLIENT_SENDS(ACK, 1, 1, 0),
	 FLOW_IN(STATE_ESTABLISHED)},
	{.then = "the client's numbers are its own again: its RST closes",
	 CLIENT_SENDS(RST, 1, 0, 0),
	 FLOW_IN(STATE_CLOSING)},
};

static const struct row refused_rows[] = {
	{.says = "[T33] an RST that does not answer the SYN is translated and changes nothing",
	 .given = given_begun,
	 CONTAINER_SENDS(RST | ACK, 0, 2, 0),
	 FLOW_HALF_OPEN},
	{.then = "[T33] nor does one without an acknowledgment", CONTAINER_SENDS(RST, 1, 0, 0)},
	{.then = "an RST that answers it is translated and ends the flow",
	 CONTAINER_SENDS(RST | ACK, 0, 1, 0),
	 .no_flows = true},
	{.then = "the SYN that is sent again begins anew",
	 CLIENT_SENDS(SYN, 0, 0, 0),
	 FLOW_HALF_OPEN},
	{.then = "and may be accepted", CONTAINER_SENDS(SYN | ACK, 0, 1, 0)},
	{.then = "by the client, too", CLIENT_SENDS(ACK, 1, 1, 0), FLOW_IN(STATE_ESTABLISHED)},
	{.says = "a connection of the host is refused",
	 .given = given_of_host,
	 ARRIVES(TCP(v4_server, 443, v4_host, 8080, RST | ACK, NUMBERS(0, CLIENT + 1, 0))),
	 .no_flows = true},
	{.says = "an untranslated one that is refused is kept for a moment",
	 .given = given_direct,
	 LEAVES(BY_ONE(RST | ACK, NUMBERS(0, CLIENT + 1, 0))),
	 .flows = {DIRECT(NEW, IPPROTO_TCP, v4_client, 40000, v4_container_one, 80)}},
};

/* An RST after the SYN-ACK: late segments of the other side are translated for ten seconds. */
static void aborted_row(void)
{
	const struct packet again = BY_ONE(SYN | ACK, NUMBERS(SERVER, CLIENT + 1, 0)),
			    reset = TO_HOST(RST, NUMBERS(CLIENT + 1, 0, 0)),
			    begin = TO_HOST(SYN, NUMBERS(CLIENT, 0, 0));

	fixture_reset();
	row_begin_counting("a half-open flow that its client resets lives for ten seconds");
	given_half_open();
	row_send(FROM_UPLINK, UPLINK, &reset);
	row_send(TO_UPLINK, UPLINK, &again);
	row_expect_number(COUNTED(rewritten_source), 2, "rewritten_source");
	row_expect_number(COUNTED(flow_masquerade), 0, "flow_masquerade");
	fixture_age_flows(11);
	row_send(FROM_UPLINK, UPLINK, &begin);
	row_expect_number(COUNTED(flow_mapping), 2, "flow_mapping");
	fixture_age_flows(11);
	row_send(FROM_UPLINK, UPLINK, &begin);
	row_expect_number(COUNTED(flow_mapping), 2, "flow_mapping, not reset");
	row_end_checked();
}

/* Whether an ACK with this number, in the last minute of a closed flow, keeps it for others */
static void check_kept(const char *says, uint32_t sequence, bool kept)
{
	const struct packet late = TO_HOST(ACK, NUMBERS(CLIENT + sequence, SERVER + 2, 0)),
			    begin = TO_HOST(SYN, NUMBERS(CLIENT, 0, 0));

	fixture_reset();
	row_begin_counting(says);
	given_closed();
	fixture_age_flows(200);
	row_send(FROM_UPLINK, UPLINK, &late);
	fixture_age_flows(60);
	row_send(FROM_UPLINK, UPLINK, &begin);
	row_expect_number(COUNTED(flow_mapping), kept ? 1 : 2, "flow_mapping");
	row_end_checked();
}

#define FEW_PORTS 4

/* The server's answer to whatever port the connection has got */
static void refuse(int first)
{
	for (int port = first; port < first + FEW_PORTS; port++) {
		const struct packet answer =
			TCP(v4_server, 443, v4_host, port, RST | ACK, NUMBERS(0, CLIENT + 1, 0));

		row_send(FROM_UPLINK, UPLINK, &answer);
	}
}

static void refused_ports_row(void)
{
	fixture_reset();
	fixture_set_masquerade_ports(20000, 20000 + FEW_PORTS - 1);
	row_begin_counting("refused connections give their ports back");
	for (int i = 0; i < 10 * FEW_PORTS; i++) {
		const struct packet begin = TCP(v4_container_one, 30000 + i, v4_server, 443, SYN,
						NUMBERS(CLIENT, 0, 0));

		row_expect_verdict(row_send(TO_UPLINK, UPLINK, &begin), TC_ACT_UNSPEC, "a SYN");
		refuse(20000);
	}
	row_expect_number(COUNTED(flow_masquerade), 10 * FEW_PORTS, "flow_masquerade");
	row_expect_number(fixture_share_of(ONE).half_open[1], 0, "half-open ones");
	row_end_checked();
	fixture_reset();
}

void tcp_state_rows(void)
{
	ROWS_RUN(closing_rows);
	ROWS_RUN(reset_rows);
	ROWS_RUN(life_rows);
	ROWS_RUN(late_rows);
	ROWS_RUN(forged_rows);
	ROWS_RUN(refused_rows);
	aborted_row();
	check_kept("a late ACK keeps a closed flow", 2, true);
	check_kept("[T33] a forged one does not", 700000000, false);
	refused_ports_row();
}
