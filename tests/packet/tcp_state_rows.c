/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tcp_state_rows.c - the states of a TCP flow: FIN, valid and forged RST, a reused tuple. */
#include "row.h"

/* The client's and the container's initial sequence numbers */
#define CLIENT_FIRST 1000
#define SERVER_FIRST 0xfffffff0u /* wraps */

#define TO_HOST(flags, ...) TCP(v4_client, 40000, v4_host, 8080, flags, ##__VA_ARGS__)
#define TO_ONE(flags, ...) TCP(v4_client, 40000, v4_container_one, 80, flags, ##__VA_ARGS__)
#define BY_ONE(flags, ...) TCP(v4_container_one, 80, v4_client, 40000, flags, ##__VA_ARGS__)

#define NUMBERS(sequence_, acknowledgment_, payload_) \
	.sequence = (sequence_), .acknowledgment = (acknowledgment_), .payload = (payload_), \
	.empty = !(payload_)

static void no_flow(void)
{
}

static void begun(void)
{
	ARRIVE(TO_HOST(SYN, NUMBERS(CLIENT_FIRST, 0, 0)));
}

static void half_open(void)
{
	begun();
	LEAVE(BY_ONE(SYN | ACK, NUMBERS(SERVER_FIRST, CLIENT_FIRST + 1, 0)));
}

static void connected(void)
{
	half_open();
	ARRIVE(TO_HOST(ACK, NUMBERS(CLIENT_FIRST + 1, SERVER_FIRST + 1, 0)));
}

static const struct entry record = MAPPED(ANSWERED, IPPROTO_TCP, v4_client, 40000, v4_host, 8080,
					  v4_container_one, 80, 40000, .owner = ONE);

/* The record has no sequence numbers. */
static void rebuilt(void)
{
	fixture_put(&record);
}

static void closed(void)
{
	connected();
	ARRIVE(TO_HOST(FIN | ACK, NUMBERS(CLIENT_FIRST + 1, SERVER_FIRST + 1, 0)));
	LEAVE(BY_ONE(FIN | ACK, NUMBERS(SERVER_FIRST + 1, CLIENT_FIRST + 2, 0)));
}

static void reset(void)
{
	connected();
	ARRIVE(TO_HOST(RST, NUMBERS(CLIENT_FIRST + 1, 0, 0)));
}

static void given_of_host(void)
{
	row_send_of_host(TO_UPLINK, UPLINK,
			 &(const struct packet)TCP(v4_host, 8080, v4_server, 443, SYN,
						   NUMBERS(CLIENT_FIRST, 0, 0)));
}

static void given_direct(void)
{
	const struct packet begin = TO_ONE(SYN, NUMBERS(CLIENT_FIRST, 0, 0));

	row_send(FROM_UPLINK, UPLINK, &begin);
	row_send(TO_CONTAINER, BRIDGE, &begin);
}

static void given_forgotten(void)
{
	connected();
	fixture_remove(&record);
}

enum sender { CLIENT, CONTAINER };

/* Of the flow, the only one, after the packet; SAME: as it was before. PROMOTED: and counted so. */
enum { SAME, HALF_OPEN, ESTABLISHED, HALF_CLOSED, CLOSED, GONE, PROMOTED = 8 };

/* A packet of the mapped connection, which is translated. Sequence and acknowledgment are counted
 * from the initial numbers of sender and receiver. */
struct exchange {
	const char *says;
	void (*given)(void); /* THEN: continues the row before */
	enum sender sender;
	unsigned int flags;
	int sent, acknowledged;
	unsigned int payload;
	unsigned int fate;
};

#define THEN NULL

static struct entry flow_of(unsigned int fate)
{
	static const enum flow_state states[] = {[ESTABLISHED] = STATE_ESTABLISHED,
						 [HALF_CLOSED] = STATE_FIN,
						 [CLOSED] = STATE_CLOSING};

	return (struct entry)MAPPED(fate == HALF_OPEN ? NEW : ANSWERED, IPPROTO_TCP, v4_client,
				    40000, v4_host, 8080, v4_container_one, 80, 40000,
				    .state = states[fate]);
}

static void run_exchange(const struct exchange *exchange)
{
	uint32_t sent = (uint32_t)exchange->sent, acknowledged = (uint32_t)exchange->acknowledged;
	const struct row client = {
		TO(v4_container_one, 80,
		   ARRIVES(TO_HOST(exchange->flags,
				   NUMBERS(CLIENT_FIRST + sent, SERVER_FIRST + acknowledged,
					   exchange->payload))))};
	const struct row container = {
		AS(v4_host, 8080,
		   LEAVES(BY_ONE(exchange->flags,
				 NUMBERS(SERVER_FIRST + sent, CLIENT_FIRST + acknowledged,
					 exchange->payload))))};
	unsigned int fate = exchange->fate & ~(unsigned int)PROMOTED;
	struct row row = exchange->sender == CLIENT ? client : container;

	row.says = exchange->given ? exchange->says : NULL;
	row.then = exchange->given ? NULL : exchange->says;
	row.given = exchange->given;
	row.counts[0] = exchange->fate & PROMOTED ? "flow_promoted" : NULL;
	row.no_flows = fate == GONE;
	if (fate && fate != GONE)
		row.flows[0] = flow_of(fate);
	row_run_all(&row, 1, NULL);
}

static void run_exchanges(const struct exchange *exchanges, size_t count)
{
	for (size_t i = 0; i < count; i++)
		run_exchange(&exchanges[i]);
}

#define EXCHANGES_RUN(rows) run_exchanges(rows, sizeof(rows) / sizeof((rows)[0]))

static const struct exchange closing_rows[] = {
	{"a FIN of one side", connected, CLIENT, FIN | ACK, 1, 1, 0, HALF_CLOSED},
	{"a retransmitted FIN is not taken for the other side's", THEN, CLIENT, FIN | ACK, 1, 1, 0,
	 SAME},
	{"half-closed: data the other way still passes", THEN, CONTAINER, ACK, 1, 2, 100, SAME},
	{"and is acknowledged", THEN, CLIENT, ACK, 2, 101, 0, SAME},
	{"the other side's FIN closes", THEN, CONTAINER, FIN | ACK, 101, 2, 0, CLOSED},
	{"the last ACK", THEN, CLIENT, ACK, 2, 102, 0, SAME},
	{"a late RST is translated all the same", THEN, CONTAINER, RST, 102, 0, 0, SAME},
	{"data that 60 MB went unseen before, two receivers' windows", connected, CLIENT, ACK,
	 60000001, 1, 10, ESTABLISHED},
	{"and its acknowledgment are followed", THEN, CONTAINER, ACK, 1, 60000011, 0, SAME},
	{"so that a FIN counts", THEN, CLIENT, FIN | ACK, 60000011, 1, 0, HALF_CLOSED},
	{"the container closes first", connected, CONTAINER, FIN | ACK, 1, 1, 0, HALF_CLOSED},
	{"then the client", THEN, CLIENT, FIN | ACK, 1, 2, 0, CLOSED},
	{"both close at the same time: the client", connected, CLIENT, FIN | ACK, 1, 1, 0,
	 HALF_CLOSED},
	{"and the container, which has not seen that FIN", THEN, CONTAINER, FIN | ACK, 1, 1, 0,
	 CLOSED},
	{"both acknowledge: the client", THEN, CLIENT, ACK, 2, 2, 0, SAME},
	{"and the container", THEN, CONTAINER, ACK, 2, 2, 0, SAME},
	{"the packet that makes the flow assured has a FIN", half_open, CLIENT, FIN | ACK, 1, 1, 0,
	 HALF_CLOSED | PROMOTED},
	{"and the other side's FIN closes", THEN, CONTAINER, FIN | ACK, 1, 2, 0, CLOSED},
	{"the container's FIN comes while the flow is half-open", half_open, CONTAINER, FIN | ACK,
	 1, 1, 0, HALF_OPEN},
	{"and counts when it is assured", THEN, CLIENT, ACK, 1, 2, 0, HALF_CLOSED},
	{"an ACK of data that the container has not sent leaves the flow half-open", half_open,
	 CLIENT, ACK, 1, 0x20000, 0, HALF_OPEN},
	{"so does one far behind what it sent", THEN, CLIENT, ACK, 1, -0x20000, 0, SAME},
	{"so does a packet without ACK", THEN, CLIENT, FIN, 1, 1, 0, SAME},
	{"a valid ACK after that makes the flow assured", THEN, CLIENT, ACK, 1, 1, 0,
	 ESTABLISHED | PROMOTED},
	{"a stray ACK to a mapped port", no_flow, CLIENT, ACK, 1, 1, 0, HALF_OPEN},
	{"is answered by an RST,", THEN, CONTAINER, RST, 1, 0, 0, GONE},
	{"and another one begins a flow that is half-open", THEN, CLIENT, ACK, 1, 1, 0, HALF_OPEN},
	{"an RST does not make a half-open flow assured", half_open, CLIENT, RST, 1, 0, 0,
	 HALF_OPEN},
};

static const struct exchange reset_rows[] = {
	{"an RST with the sequence number that the container has acknowledged closes", connected,
	 CLIENT, RST, 1, 0, 0, CLOSED},
	{"an RST of the container with the number that the client has acknowledged closes",
	 connected, CONTAINER, RST | ACK, 1, 1, 0, CLOSED},
	{"an RST one byte ahead is translated and changes nothing", connected, CLIENT, RST, 2, 0, 0,
	 ESTABLISHED},
	{"nor does an RST one byte behind", THEN, CLIENT, RST, 0, 0, 0, SAME},
	{"nor does one of the container", THEN, CONTAINER, RST, 2, 0, 0, SAME},
	{"data", connected, CLIENT, ACK, 1, 1, 10, ESTABLISHED},
	{"an RST right after data that is not acknowledged yet closes", THEN, CLIENT, RST | ACK, 11,
	 1, 0, CLOSED},
	{"forged data far from the client's sequence number", connected, CLIENT, ACK, 0x7000000, 1,
	 10, ESTABLISHED},
	{"does not make an RST after it valid", THEN, CLIENT, RST, 0x700000a, 0, 0, SAME},
	{"forged data near the client's number, with an impossible acknowledgment", connected,
	 CLIENT, ACK, 500, 0x7000000, 10, ESTABLISHED},
	{"does not either", THEN, CLIENT, RST, 510, 0, 0, SAME},
	{"nor does a forged SYN near the client's number", connected, CLIENT, SYN, 500, 0, 0,
	 ESTABLISHED},
	{"an RST after that SYN", THEN, CLIENT, RST, 501, 0, 0, SAME},
	{"a forged SYN", connected, CLIENT, SYN, 700000000, 0, 0, ESTABLISHED},
	{"that the container answers with an ACK of the connection's own numbers", THEN, CONTAINER,
	 ACK, 1, 1, 0, SAME},
	{"does not make an RST with the forger's number valid", THEN, CLIENT, RST, 700000001, 0, 0,
	 SAME},
	{"nor one with an acknowledgment", THEN, CLIENT, RST | ACK, 700000001, 1, 0, SAME},
	{"the forger's data does not change the numbers", THEN, CLIENT, ACK, 700000001, 1, 10,
	 SAME},
	{"nor does it make an RST after it valid", THEN, CLIENT, RST, 700000011, 0, 0, SAME},
	{"the client's own RST closes", THEN, CLIENT, RST, 1, 0, 0, CLOSED},
	{"a forged SYN-ACK that answers no SYN", connected, CLIENT, SYN | ACK, 700000000, 1, 0,
	 ESTABLISHED},
	{"does not make an RST with the forger's number valid", THEN, CLIENT, RST, 700000001, 0, 0,
	 SAME},
	{"nor does a forged SYN-ACK of the container that answers none", connected, CONTAINER,
	 SYN | ACK, 700000000, 1, 0, ESTABLISHED},
	{"make an RST of the container valid", THEN, CONTAINER, RST, 700000001, 0, 0, SAME},
	{"retransmitted data", connected, CLIENT, ACK, 1, 1, 10, ESTABLISHED},
	{"a retransmitted part of it", THEN, CLIENT, ACK, 1, 1, 5, SAME},
	{"does not move the last sequence number back", THEN, CLIENT, RST, 6, 0, 0, SAME},
	{"a flow rebuilt in mid-connection has no numbers: any RST closes", rebuilt, CLIENT, RST,
	 77777, 0, 0, CLOSED},
};

static const struct exchange life_rows[] = {
	{"an RST that the container did not accept: it answers", reset, CONTAINER, ACK, 1, 1, 0,
	 CLOSED},
	{"and the client goes on: the flow lives", THEN, CLIENT, ACK, 1, 1, 10, ESTABLISHED},
	{"a keep-alive shows life too", reset, CLIENT, ACK, 0, 1, 0, CLOSED},
	{"and its answer reopens the flow", THEN, CONTAINER, ACK, 1, 1, 0, ESTABLISHED},
	{"after a valid RST data of the container that was on its way", reset, CONTAINER, ACK, 1, 1,
	 100, CLOSED},
	{"and is answered by another RST", THEN, CLIENT, RST, 1, 0, 0, SAME},
	{"nor does late data that the client sent before reopen the flow", THEN, CLIENT, ACK, -20,
	 1, 10, SAME},
	{"a SYN reuses a closed flow and its place", closed, CLIENT, SYN, 90000, 0, 0, CLOSED},
	{"the SYN-ACK", THEN, CONTAINER, SYN | ACK, 70000, 90001, 0, SAME},
	{"the ACK: established", THEN, CLIENT, ACK, 90001, 70001, 0, ESTABLISHED},
	{"an RST with the old numbers changes nothing", THEN, CLIENT, RST, 1, 0, 0, SAME},
	{"one of the container with the new numbers closes", THEN, CONTAINER, RST, 70001, 0, 0,
	 CLOSED},
	{"a SYN of the container reuses a closed flow too", closed, CONTAINER, SYN, 50000, 0, 0,
	 CLOSED},
	{"the client's SYN-ACK", THEN, CLIENT, SYN | ACK, 60000, 50001, 0, SAME},
	{"the container's ACK: established", THEN, CONTAINER, ACK, 50001, 60001, 0, ESTABLISHED},
	{"the client has lost its connection and begins another", connected, CLIENT, SYN, 800000000,
	 0, 0, ESTABLISHED},
	{"which the container accepts", THEN, CONTAINER, SYN | ACK, 700000000, 800000001, 0, SAME},
	{"and the client acknowledges", THEN, CLIENT, ACK, 800000001, 700000001, 0, SAME},
	{"an RST with the old numbers changes nothing", THEN, CLIENT, RST, 1, 0, 0, SAME},
	{"one with the new numbers closes", THEN, CLIENT, RST, 800000001, 0, 0, CLOSED},
};

static const struct row late_rows[] = {
	{.says = "a late FIN without a record gets the host's address",
	 .given = given_forgotten,
	 LEAVES(BY_ONE(FIN | ACK)),
	 .out = TCP(v4_host, 80, v4_client, 40000, FIN | ACK),
	 .flows = {THIS_MASQUERADED(NEW)}},
	{.says = "and so does a late RST",
	 .given = given_forgotten,
	 LEAVES(BY_ONE(RST)),
	 .out = TCP(v4_host, 80, v4_client, 40000, RST),
	 .flows = {THIS_MASQUERADED(NEW)}},
	{.says = "a connection of the host is refused",
	 .given = given_of_host,
	 ARRIVES(TCP(v4_server, 443, v4_host, 8080, RST | ACK, NUMBERS(0, CLIENT_FIRST + 1, 0))),
	 .no_flows = true},
	{.says = "an untranslated one that is refused is kept for a moment",
	 .given = given_direct,
	 LEAVES(BY_ONE(RST | ACK, NUMBERS(0, CLIENT_FIRST + 1, 0))),
	 .flows = {THIS_DIRECT(NEW)}},
};

/* Whoever knows the addresses can forge these, but does not know the numbers. */
static const struct exchange forged_rows[] = {
	{"a FIN far from the client's number changes nothing", connected, CLIENT, FIN | ACK,
	 700000000, 1, 0, ESTABLISHED},
	{"nor does one that acknowledges what the container has not sent", THEN, CLIENT, FIN | ACK,
	 1, 0x30000, 0, SAME},
	{"nor one far behind what it has acknowledged", THEN, CLIENT, FIN | ACK, 1, -0x30000, 0,
	 SAME},
	{"nor one whose number is only roughly the client's", THEN, CLIENT, FIN | ACK, 0x30000, 1,
	 0, SAME},
	{"nor one of the container", connected, CONTAINER, FIN | ACK, 700000000, 1, 0, ESTABLISHED},
	{"FIN without ACK, which nobody accepts, changes nothing", connected, CLIENT, FIN, 1, 0, 0,
	 ESTABLISHED},
	{"nor do SYN and FIN together", THEN, CLIENT, SYN | FIN, 1, 0, 0, SAME},
	{"nor with ACK", THEN, CLIENT, SYN | FIN | ACK, 1, 1, 0, SAME},
	{"nor no flag at all", THEN, CLIENT, 0, 1, 1, 10, SAME},
	{"the client's own FIN counts after all these", THEN, CLIENT, FIN | ACK, 1, 1, 0,
	 HALF_CLOSED},
	{"SYN and FIN together do not reuse a closed flow", closed, CLIENT, SYN | FIN, 90000, 0, 0,
	 CLOSED},
	{"forged data near the client's number that acknowledges too much", connected, CLIENT, ACK,
	 500, 0x30000, 10, ESTABLISHED},
	{"does not make an RST after it valid", THEN, CLIENT, RST, 510, 0, 0, SAME},
	{"after an RST the container answers", reset, CONTAINER, ACK, 1, 1, 0, CLOSED},
	{"and a forged ACK does not reopen the flow", THEN, CLIENT, ACK, 700000000, 1, 0, SAME},
	{"a forged SYN on a closed flow", closed, CLIENT, SYN, 90000, 0, 0, CLOSED},
	{"is answered,", THEN, CONTAINER, SYN | ACK, 70000, 90001, 0, SAME},
	{"and an ACK of another number does not reopen it", THEN, CLIENT, ACK, 90001, 500000, 0,
	 SAME},
	{"a forged FIN while the flow begins", begun, CLIENT, FIN | ACK, 700000000, 1, 0,
	 HALF_OPEN},
	{"and one of the other side", THEN, CONTAINER, FIN | ACK, 0, 5000000, 0, SAME},
	{"a SYN-ACK that does not answer the SYN", THEN, CONTAINER, SYN | ACK, 3000, 5000000, 0,
	 SAME},
	{"is no reply, so that what acknowledges it leaves the flow half-open", THEN, CLIENT, ACK,
	 1, 3001, 0, SAME},
	{"then the right one,", THEN, CONTAINER, SYN | ACK, 0, 1, 0, SAME},
	{"and a forged SYN of the client", THEN, CLIENT, SYN, 700000000, 0, 0, SAME},
	{"the flow is assured, and none of them has half-closed it", THEN, CLIENT, ACK, 1, 1, 0,
	 ESTABLISHED},
	{"the client's numbers are its own again: its RST closes", THEN, CLIENT, RST, 1, 0, 0,
	 CLOSED},
};

static const struct exchange refused_rows[] = {
	{"an RST that does not answer the SYN is translated and changes nothing", begun, CONTAINER,
	 RST | ACK, 0, 2, 0, HALF_OPEN},
	{"nor does one without an acknowledgment", THEN, CONTAINER, RST, 1, 0, 0, SAME},
	{"an RST that answers it is translated and ends the flow", THEN, CONTAINER, RST | ACK, 0, 1,
	 0, GONE},
	{"the SYN that is sent again begins anew", THEN, CLIENT, SYN, 0, 0, 0, HALF_OPEN},
	{"and may be accepted", THEN, CONTAINER, SYN | ACK, 0, 1, 0, SAME},
	{"by the client, too", THEN, CLIENT, ACK, 1, 1, 0, ESTABLISHED},
	{"a reply,", begun, CONTAINER, SYN | ACK, 0, 1, 0, HALF_OPEN},
	{"whose client resets the flow", THEN, CLIENT, RST, 1, 0, 0, SAME},
	{"and begins anew", THEN, CLIENT, SYN, 0, 0, 0, SAME},
	{"what acknowledges the first flow's reply assures nothing", THEN, CLIENT, ACK, 1, 1, 0,
	 SAME},
};

/* An RST after the SYN-ACK: late segments of the other side are translated for ten seconds. */
static void aborted_row(void)
{
	const struct packet reset = TO_HOST(RST, NUMBERS(CLIENT_FIRST + 1, 0, 0)),
			    begin = TO_HOST(SYN, NUMBERS(CLIENT_FIRST, 0, 0));

	fixture_reset();
	row_begin_counting("a half-open flow that its client resets lives for ten seconds");
	half_open();
	row_send(FROM_UPLINK, UPLINK, &reset);
	LEAVE(BY_ONE(SYN | ACK, NUMBERS(SERVER_FIRST, CLIENT_FIRST + 1, 0)));
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
	fixture_reset();
	row_begin_counting(says);
	closed();
	fixture_age_flows(200);
	ARRIVE(TO_HOST(ACK, NUMBERS(CLIENT_FIRST + sequence, SERVER_FIRST + 2, 0)));
	fixture_age_flows(60);
	ARRIVE(TO_HOST(SYN, NUMBERS(CLIENT_FIRST, 0, 0)));
	row_expect_number(COUNTED(flow_mapping), kept ? 1 : 2, "flow_mapping");
	row_end_checked();
}

#define FEW_PORTS 4

/* The server's answer to whatever port the connection has got */
static void refuse(int first)
{
	for (int port = first; port < first + FEW_PORTS; port++) {
		ARRIVE(TCP(v4_server, 443, v4_host, port, RST | ACK,
			   NUMBERS(0, CLIENT_FIRST + 1, 0)));
	}
}

static void refused_ports_row(void)
{
	fixture_reset();
	fixture_set_masquerade_ports(20000, 20000 + FEW_PORTS - 1);
	row_begin_counting("refused connections give their ports back");
	for (int i = 0; i < 10 * FEW_PORTS; i++) {
		row_expect_passed(LEAVE(TCP(v4_container_one, 30000 + i, v4_server, 443, SYN,
					    NUMBERS(CLIENT_FIRST, 0, 0))),
				  "a SYN");
		refuse(20000);
	}
	row_expect_number(COUNTED(flow_masquerade), 10 * FEW_PORTS, "flow_masquerade");
	row_expect_number(fixture_share_of(ONE).half_open[1], 0, "half-open ones");
	row_end_checked();
	fixture_reset();
}

void tcp_state_rows(void)
{
	EXCHANGES_RUN(closing_rows);
	EXCHANGES_RUN(reset_rows);
	EXCHANGES_RUN(life_rows);
	ROWS_RUN(late_rows);
	EXCHANGES_RUN(forged_rows);
	EXCHANGES_RUN(refused_rows);
	aborted_row();
	check_kept("a late ACK keeps a closed flow", 2, true);
	check_kept("a forged one does not", 700000000, false);
	refused_ports_row();
}
