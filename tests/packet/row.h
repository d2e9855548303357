/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* row.h - one packet at one hook, and the expected result. */
#pragma once

#include <netinet/in.h>
#include <stddef.h>

#include "fixture.h"

enum verdict { PASSES, DROPPED, REDIRECTED };

#define ROW_ENTRIES 10
#define ROW_HOLDS 2
#define ROW_COUNTERS 4
#define ROW_TRIES 5 /* of a row whose packets must come within one second */

/* Of a packet. No address: that of the input; no port: likewise. Of an echo the source's port is
 * the identifier. */
struct end {
	const char *address;
	int port;
};

struct row {
	const char *says;
	const char *then; /* instead of says: continues the row before; its maps and sockets stay */
	/* The row, written down for IPv4, and those that continue it run over IPv6 afterwards. */
	bool both_families;
	/* What there is before the packet, made in this order */
	struct host_socket socket;
	uint16_t masquerade_ports[2];  /* first and last; none: those of the row before, or
					  20000-29999 */
	bool no_ports;                 /* not even those */
	struct entry holds[ROW_HOLDS]; /* records */
	bool loses_alias;              /* the first of them */
	enum container offloads;       /* its flows may skip the stack */
	void (*given)(void);
	void (*after)(enum container); /* what happens to a container: AFTER() */
	enum container container;
	/* Repeated, with the rows that it continues, if the second changes meanwhile. */
	bool within_a_second;

	enum hook hook;
	enum device device;
	/* At an egress hook: a packet of the host itself, without an ingress interface */
	bool of_the_host;
	enum mark mark;
	struct packet in;

	enum verdict verdict;
	enum flow_path by;                      /* if REDIRECTED: how it skips the IP stack */
	unsigned int priority;                  /* of IPv4 packets that skip it */
	struct packet out;                      /* none: the input, byte for byte, */
	struct end new_source, new_destination; /* but with these: AS(), TO() */
	/* All records; if none is given: those that there were before the packet. */
	struct entry flows[ROW_ENTRIES];
	struct entry adds; /* one more than there were before */
	bool flows_unchecked;
	bool no_flows;                    /* none is left */
	const char *counts[ROW_COUNTERS]; /* these go up by one; no other drop_* may */
	void (*afterwards)(void);         /* further checks, by row_fail() */
};

#define IN_BOTH_FAMILIES(says_) .says = says_, .both_families = true

#define SOCKET(protocol_, address_, port_, ...) \
	.socket = {.protocol = IPPROTO_##protocol_, \
		   .address = address_, \
		   .port = port_, \
		   ##__VA_ARGS__}
#define WITH_PEER(address_, port_) .peer = address_, .peer_port = port_
#define AFTER(what, container_) .after = what, .container = container_

#define AT(hook_, device_) .hook = hook_, .device = device_

/* Where most packets come by, and the packet: */
#define ARRIVES(...) AT(FROM_UPLINK, UPLINK), .in = __VA_ARGS__
#define LEAVES(...) AT(TO_UPLINK, UPLINK), .in = __VA_ARGS__
#define DELIVERED(...) AT(TO_CONTAINER, BRIDGE), .in = __VA_ARGS__
#define SENT_BY(veth, ...) AT(FROM_CONTAINER, veth), .in = __VA_ARGS__
#define ARRIVES_BY(device, ...) AT(FROM_UPLINK, device), .in = __VA_ARGS__
#define LEAVES_BY(device, ...) AT(TO_UPLINK, device), .in = __VA_ARGS__
#define DELIVERED_BY(device, ...) AT(TO_CONTAINER, device), .in = __VA_ARGS__
#define CROSSES_BRIDGE(...) AT(FROM_BRIDGE, BRIDGE), .in = __VA_ARGS__

/* Dropped, and these counters say so. */
#define DROPPED_AS(...) .verdict = DROPPED, .counts = {__VA_ARGS__}

/* The packet, as ARRIVES() and the like say it, goes on with another source or destination. */
#define AS(address_, port_, ...) __VA_ARGS__, .new_source = {address_, port_}
#define TO(address_, port_, ...) __VA_ARGS__, .new_destination = {address_, port_}
#define OF_THE_HOST(...) __VA_ARGS__, .of_the_host = true
/* And it has begun the only flow. */
#define MASQUERADED_AS(...) AS(__VA_ARGS__), .flows = {THIS_MASQUERADED(NEW)}
#define MAPPED_TO(...) TO(__VA_ARGS__), .flows = {THIS_MAPPED(NEW)}

#define TCP(source, source_port, destination, destination_port, flags, ...) \
	{ \
		.protocol = IPPROTO_TCP, .from = source, .from_port = source_port, \
		.to = destination, .to_port = destination_port, .tcp_flags = flags, ##__VA_ARGS__ \
	}
#define UDP(source, source_port, destination, destination_port, ...) \
	{ \
		.protocol = IPPROTO_UDP, .from = source, .from_port = source_port, \
		.to = destination, .to_port = destination_port, ##__VA_ARGS__ \
	}
#define UDP_LITE(source, source_port, destination, destination_port, ...) \
	{ \
		.protocol = IPPROTO_UDPLITE, .from = source, .from_port = source_port, \
		.to = destination, .to_port = destination_port, ##__VA_ARGS__ \
	}
#define SCTP(source, source_port, destination, destination_port, ...) \
	{ \
		.protocol = IPPROTO_SCTP, .from = source, .from_port = source_port, \
		.to = destination, .to_port = destination_port, ##__VA_ARGS__ \
	}
#define ICMP(protocol_, type, code, source, destination, identifier, ...) \
	{ \
		.protocol = protocol_, .icmp_type = type, .icmp_code = code, .from = source, \
		.from_port = identifier, .to = destination, ##__VA_ARGS__ \
	}
#define PING4(source, destination, identifier, ...) \
	ICMP(IPPROTO_ICMP, 8, 0, source, destination, identifier, ##__VA_ARGS__)
#define PONG4(source, destination, identifier, ...) \
	ICMP(IPPROTO_ICMP, 0, 0, source, destination, identifier, ##__VA_ARGS__)
#define STAMP4(source, destination, identifier, ...) \
	ICMP(IPPROTO_ICMP, 13, 0, source, destination, identifier, .payload = 12, ##__VA_ARGS__)
#define STAMPED4(source, destination, identifier, ...) \
	ICMP(IPPROTO_ICMP, 14, 0, source, destination, identifier, .payload = 12, ##__VA_ARGS__)
#define PING6(source, destination, identifier, ...) \
	ICMP(IPPROTO_ICMPV6, 128, 0, source, destination, identifier, ##__VA_ARGS__)
#define PONG6(source, destination, identifier, ...) \
	ICMP(IPPROTO_ICMPV6, 129, 0, source, destination, identifier, ##__VA_ARGS__)
/* An ICMP error that quotes a packet. */
#define ERROR(protocol_, type, code, source, destination, quoted, ...) \
	{ \
		.protocol = protocol_, .icmp_type = type, .icmp_code = code, .from = source, \
		.to = destination, .quotes = &(const struct packet)quoted, ##__VA_ARGS__ \
	}
#define ERROR4(type, code, source, destination, quoted, ...) \
	ERROR(IPPROTO_ICMP, type, code, source, destination, quoted, ##__VA_ARGS__)
#define ERROR6(type, code, source, destination, quoted, ...) \
	ERROR(IPPROTO_ICMPV6, type, code, source, destination, quoted, ##__VA_ARGS__)

/* The record of a connection: inside and outside; the inside's address as seen outside, and the
 * port of the outside there. */
#define RECORD(stage_, protocol_, inside_, inside_port_, outside_, outside_port_, external_, \
	       external_port_, peer_port_, kind_, ...) \
	{ \
		.stage = stage_, .protocol = protocol_, .inside = inside_, \
		.inside_port = inside_port_, .outside = outside_, .outside_port = outside_port_, \
		.external = external_, .external_port = external_port_, .peer_port = peer_port_, \
		.kind = kind_, ##__VA_ARGS__ \
	}

/* Mapped: what the client sends, and where it goes. */
#define MAPPED(stage_, protocol_, client, client_port, host, host_port, container, container_port, \
	       moved_port, ...) \
	RECORD(stage_, protocol_, container, container_port, client, moved_port, host, host_port, \
	       client_port, FLOW_MAPPING, ##__VA_ARGS__)

/* Masqueraded: what the container sends, and its source outside. */
#define MASQUERADED(stage_, protocol_, container, container_port, server, server_port, host, \
		    host_port, ...) \
	RECORD(stage_, protocol_, container, container_port, server, server_port, host, host_port, \
	       server_port, FLOW_MASQUERADE, .begun_inside = true, ##__VA_ARGS__)

/* Not translated, begun from outside or by the host. */
#define DIRECT(stage_, protocol_, client, client_port, container, container_port, ...) \
	RECORD(stage_, protocol_, container, container_port, client, client_port, container, \
	       container_port, client_port, FLOW_DIRECT, ##__VA_ARGS__)
/* A direct one before the stack has let it through. */
#define UNCONFIRMED(protocol_, client, client_port, container, container_port) \
	DIRECT(NEW, protocol_, client, client_port, container, container_port, .unconfirmed = true)
#define OF_HOST(stage_, protocol_, host, host_port, server, server_port, ...) \
	RECORD(stage_, protocol_, host, host_port, server, server_port, host, host_port, \
	       server_port, FLOW_HOST, .begun_inside = true, ##__VA_ARGS__)

#define FOREIGN(stage_, protocol_, host, host_port, server, server_port, ...) \
	RECORD(stage_, protocol_, host, host_port, server, server_port, host, host_port, \
	       server_port, FLOW_FOREIGN, .begun_inside = true, ##__VA_ARGS__)

/* The record of the row's own packet: what goes in and comes out says its addresses and ports. */
#define THIS(stage_, kind_, ...) \
	{ \
		.of_this_packet = true, .stage = stage_, .kind = kind_, ##__VA_ARGS__ \
	}
#define THIS_MAPPED(stage_, ...) THIS(stage_, FLOW_MAPPING, ##__VA_ARGS__)
#define THIS_MASQUERADED(stage_, ...) \
	THIS(stage_, FLOW_MASQUERADE, .begun_inside = true, ##__VA_ARGS__)
#define THIS_DIRECT(stage_, ...) THIS(stage_, FLOW_DIRECT, ##__VA_ARGS__)
#define THIS_UNCONFIRMED THIS_DIRECT(NEW, .unconfirmed = true)
#define THIS_OF_HOST(stage_) THIS(stage_, FLOW_HOST, .begun_inside = true)
#define THIS_FOREIGN(stage_) THIS(stage_, FLOW_FOREIGN, .begun_inside = true)

/* Runs rows in their order, a TAP line each. given: of rows that have none and continue none. */
void row_run_all(const struct row *rows, size_t count, void (*given)(void));
#define ROWS_RUN_GIVEN(given, rows) row_run_all(rows, sizeof(rows) / sizeof((rows)[0]), given)
#define ROWS_RUN(rows) ROWS_RUN_GIVEN(NULL, rows)

/* The same row of IPv6. quoted: room for what its two packets quote. Ends the program if something
 * has no counterpart. Functions of the row stay as they are: they must serve both families. */
void row_over_ipv6(struct row *other, struct packet quoted[2], const struct row *row);

/* Rows that loop over many packets count as one line. */
void row_begin(const char *says);
void row_fail(const char *why, ...) __attribute__((format(printf, 1, 2)));
void row_end(void);

/* The same, with the counters counted from the beginning and the tables checked at the end. */
void row_begin_counting(const char *says);
void row_end_checked(void);
long row_counted(size_t counter);

/* Deletes all records. Another flow has external port 25000: packets to it are still looked up. */
void row_forget_flows(void);
#define COUNTED(name) row_counted(offsetof(struct counters, name))

void row_expect_number(long got, long expected, const char *what);
void row_expect_verdict(int got, int expected, const char *whose);
void row_expect_passed(int got, const char *whose);
void row_expect_dropped(int got, const char *whose);

/* The port that the program chose last for CHOSEN. */
int row_chosen(void);

/* The frame of a row's packet, with the usual MACs of this hook and device. */
void row_build(struct frame *frame, const struct packet *packet, enum hook hook,
	       enum device device);

/* A packet before the row's own: returns TC_ACT_*. */
int row_send(enum hook hook, enum device device, const struct packet *packet);
int row_send_of_host(enum hook hook, enum device device, const struct packet *packet);
/* The same, for a packet that is written out. */
#define ARRIVE(...) row_send(FROM_UPLINK, UPLINK, &(const struct packet)__VA_ARGS__)
#define LEAVE(...) row_send(TO_UPLINK, UPLINK, &(const struct packet)__VA_ARGS__)

/* Prints the plan. Returns the number of rows that failed. */
int row_finish(void);

/* The files of rows */
void mapping_rows(void);
void masquerade_rows(void);
void portless_rows(void);
void policy_rows(void);
void direct_rows(void);
void host_rows(void);
void neighbour_rows(void);
void identity_rows(void);
void lifetime_rows(void);
void tcp_state_rows(void);
void table_rows(void);
void port_share_rows(void);
void race_rows(void);
void parsing_rows(void);
void checksum_rows(void);
void error_rows(void);
void sctp_rows(void);
void fragment_rows(void);
void garbage_rows(void);
void raw_rows(void);
void offload_rows(void);
void memo_rows(void);
void memo_tcp_rows(void);
void renewal_rows(void);
