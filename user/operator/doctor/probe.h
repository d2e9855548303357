/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * probe.h - sends one packet to a mapped port on the way that a client's would take, and follows
 * it: what our programs tell, what the kernel drops, and what nftables does with it, on the host
 * and in the container. Where a server has answered the SYN, a packet with data follows.
 *
 * The packet begins at the uplink's ingress. The program at the uplink's egress tells of the answer
 * and drops it there, so that the client who was named gets nothing. The last packet ends the
 * connection that the first one has begun, as the client would; a signal to end waits for that. If
 * the command is killed nothing stays: the kernel removes nftables' trace with our socket, and the
 * programs go on to drop what the container sends again, until it has given up.
 */
#pragma once

#include "operator/kernel/inject.h"
#include "operator/kernel/drops.h"
#include "operator/kernel/tracing.h"
#include "operator/kernel/nft_trace.h"
#include "operator/doctor/doctor.h"

enum probe_answer {
	ANSWER_NONE,
	ANSWER_ACCEPTED, /* SYN-ACK, or a datagram */
	ANSWER_RESET,
	ANSWER_ERROR, /* of ICMP */
};

/* What became of the packet; of each kind of loss the first one. */
struct probe_result {
	bool is_connected; /* the SYN was answered, and this is about the data that followed */
	bool xdp_dropped;
	char xdp_name[XDP_NAME_SIZE];
	bool was_seen;       /* by the program at the uplink's ingress */
	bool was_translated; /* to the container's address, there */
	bool was_delivered;  /* into the container's veth */
	bool was_diverted;   /* seen on its way to somebody else after that */
	uint8_t diverted_to[CNI_ADDRESS_SIZE];
	uint16_t diverted_port;
	bool has_left;              /* the answer has left the container */
	bool is_masqueraded_before; /* another NAT has changed its source, on its way out */
	bool keeps_source;          /* nobody has */
	enum probe_answer answer;
	uint64_t seen_ns, took_ns; /* by the clock of events: when it was seen, until the answer */
	uint8_t sender[CNI_ADDRESS_SIZE]; /* of the ICMP error */
	bool program_dropped;
	struct trace_event program_drop;
	bool rule_dropped, rule_is_inside;
	struct nft_drop rule_drop;
	bool kernel_dropped;
	struct trace_drop kernel_drop;
	bool kernel_drop_is_answer;
};

/* Somebody who has a connection. */
struct seen_peer {
	uint8_t address[CNI_ADDRESS_SIZE];
	uint32_t last_seen; /* CLOCK_MONOTONIC, seconds; 0: nobody */
	uint16_t port;
};

/* Whom the table of connections knows: by the address's family (IPv6, IPv4). */
struct seen_peers {
	/* The last client of each port of the host, of TCP and UDP; NULL: there is none. */
	struct seen_peer *clients[2][2];
	struct seen_peer server[2]; /* to which a masqueraded container is connected, by TCP */
};

/* What all probes of one run share. */
struct prober {
	int locked, drops; /* file descriptors */
	struct tracing tracing;
	struct kernel_names names;
	char *why_not; /* why it could not be opened; NULL: it is open */
	bool has_seen; /* the table of connections was read */
	struct seen_peers seen;
};

/* Opens doctor->prober, unless it is open. Returns NULL, or why it cannot be opened. */
const char *probe_begin(struct doctor *doctor);
void probe_end(struct doctor *doctor);

/* Who is said to send, or to be sent to, in the order of how much a failure tells. */
enum probe_client {
	CLIENT_NAMED,     /* by --from */
	CLIENT_SEEN,      /* it has a connection */
	CLIENT_NEIGHBOUR, /* it is there, and may be nobody who wants this port */
	CLIENT_INVENTED,
};

/* A way into the host, or out of it. Outwards the subject's container sends the packet to a server,
 * and the packet itself is what the uplink's program drops, in place of an answer. */
struct probe_way {
	bool is_outwards;
	enum probe_client client;
	bool with_rules;          /* has nftables trace it */
	bool is_one_of_many;      /* a loss is no reason to wait for long */
	const struct link *entry; /* the uplink, or the container's veth */
	struct probe_packet packet;
};

/* Returns an address for documentation (RFC 5737, RFC 3849): a client far away that nobody is. */
const uint8_t *probe_far_address(bool ipv4);
uint16_t probe_random_port(void);
/* Returns whether our programs are at the uplink's egress: without them no answer is dropped
 * there. */
bool probe_has_programs(const struct interface_look *uplink);

/* What is said of a probe that was not answered as it should be. Begins as {0}. */
struct probe_finding {
	char *cause, *place, *remedy;
	const char *code; /* of --explain */
	bool is_firewall; /* which may let others in */
	bool is_final;    /* to trace rules would tell no more */
	bool has_limits;  /* of the table in which it was dropped: it may pass in a moment */
};

void probe_finding_release(struct probe_finding *finding);

/* probe_cause.c: returns what the probe's fate means, cause first. VERDICT_OK: it was answered;
 * VERDICT_NOTE: what has dropped it tells nothing of clients that there are. */
enum verdict probe_judge(struct doctor *doctor, const struct subject *subject,
			 const struct probe_way *way, const struct probe_result *result,
			 struct probe_finding *finding);
/* Sends the packet, and ends what it has begun. CNI_ERROR_KERNEL_REFUSED. */
int probe_send(struct doctor *doctor, const struct subject *subject, const struct probe_way *way,
	       struct probe_result *result, struct cni_error *err);
/* Sends the packet, and judges what became of it; again after a second where a firewall counts
 * packets. VERDICT_COULD_NOT_LOOK: it could not be sent. */
enum verdict probe(struct doctor *doctor, const struct subject *subject, struct probe_way *way,
		   struct probe_finding *finding);

/* Returns a port that this client has no connection from, which the probe would end. */
uint16_t probe_free_port(const struct doctor *doctor, const struct subject *subject,
			 const struct probe_way *way);

/* check_outwards.c: returns why no packet can be sent out of a container to this server; NULL: it
 * can, and an uplink's program will swallow it. */
const char *outwards_why_not(const struct doctor *doctor, const struct link *sender,
			     const uint8_t *server);

/* series.c: sends many packets to a port, small ones and such as fill the uplink's MTU, as the
 * client of the way, to whom one was answered before, until a few seconds are over. Adds a finding
 * where some are lost or refused, or those of one size; where `says`, also where all are answered.
 */
void series_probe(struct doctor *doctor, const struct subject *subject, struct probe_way *way,
		  uint32_t count, bool says);

/* --- as whom a probe is sent: real clients first (probe_client.c) --------------------------- */

/* Reads the table once. */
const struct seen_peers *probe_seen(struct doctor *doctor);

/* Returns the last client of the port, if its policy lets that in; NULL: none is known. */
const struct seen_peer *probe_seen_client(struct doctor *doctor, const struct subject *subject,
					  const struct policy *policy);

#define CANDIDATES_MOST 3

struct candidate {
	enum probe_client client;
	uint8_t address[CNI_ADDRESS_SIZE];
};

struct candidates {
	struct candidate list[CANDIDATES_MOST];
	size_t count;
	bool closed; /* sourceRanges let nobody of this family in */
};

/* Writes whom a packet to the subject that comes in by this uplink may be from: who has been seen,
 * a neighbour, and somebody who is made up; where sourceRanges say who may come, those alone. Each
 * is somebody to whom answers get as far as the program that swallows them. */
void probe_candidates(struct doctor *doctor, const struct subject *subject,
		      const struct policy *policy, const struct link *uplink,
		      struct candidates *found);
