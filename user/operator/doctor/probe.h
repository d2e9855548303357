/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * probe.h - sends one packet to a mapped port on the way that a client's would take, and follows
 * it: what our programs tell, what the kernel drops, and what nftables does with it, on the host
 * and in the container.
 *
 * The packet begins at the uplink's ingress. The program at the uplink's egress tells of the answer
 * and ends it there, so that the client who was named gets nothing. What the packet has begun is
 * ended by a second one, as the client would; a signal to end waits for that. Killed at any place,
 * nothing stays: nftables forgets it with our socket; the programs go on to swallow what the
 * container sends again, and forget it when the container has given up.
 */
#pragma once

#include "operator/kernel/inject.h"
#include "operator/kernel/kernel_names.h"
#include "operator/kernel/tracing.h"
#include "operator/kernel/nft_trace.h"
#include "operator/doctor/doctor.h"

enum probe_answer {
	ANSWER_NONE,
	ANSWER_ACCEPTED, /* SYN-ACK, or a datagram */
	ANSWER_RESET,
	ANSWER_ERROR, /* of ICMP */
};

/* What became of it. Of each kind of loss the first one. */
struct probe_result {
	bool xdp_dropped;
	char xdp_name[XDP_NAME_SIZE];
	bool was_seen;              /* by the program at the uplink's ingress */
	bool was_delivered;         /* into the container's veth */
	bool has_left;              /* the answer, the container */
	bool is_masqueraded_before; /* by somebody else than us, on its way out */
	enum probe_answer answer;
	uint8_t sender[CNI_ADDRESS_SIZE]; /* of an error */
	bool program_dropped;
	struct trace_event program_drop;
	bool rule_dropped, rule_is_inside;
	struct nft_drop rule_drop;
	bool kernel_dropped;
	struct trace_drop kernel_drop;
};

/* What all probes of one run share. */
struct prober {
	int locked, drops; /* file descriptors */
	struct tracing tracing;
	struct kernel_names names;
	char *why_not; /* it could not be opened; NULL: it was */
};

/* Opens doctor->prober, unless that was done before. NULL, or why it cannot be opened. */
const char *probe_begin(struct doctor *doctor);
void probe_end(struct doctor *doctor);

/* One way into the host, or out of it: then the subject's container sends the packet to a server,
 * with which goes what else would be an answer. */
struct probe_way {
	bool is_outwards;
	const struct link *entry; /* the uplink, or the container's veth */
	struct probe_packet packet;
};

/* Of documentation (RFC 5737, RFC 3849): somebody far away, who is nobody. */
const uint8_t *probe_far_address(bool ipv4);
uint16_t probe_random_port(void);
/* Whether programs are at the uplink's egress, without which nothing is swallowed there. */
bool probe_has_programs(const struct interface_look *uplink);

/* probe_cause.c: adds a finding, cause first, unless the packet was answered as it should be. */
void probe_report(struct doctor *doctor, const struct subject *subject, const struct probe_way *way,
		  const struct probe_result *result);
/* Sends it, and ends what it has begun. CNI_ERROR_KERNEL_REFUSED. */
int probe_send(struct doctor *doctor, const struct subject *subject, const struct probe_way *way,
	       struct probe_result *result, struct cni_error *err);
/* Sends it, and reports; that it cannot be sent is a finding, too. False: it was not sent. */
bool probe(struct doctor *doctor, const struct subject *subject, const struct probe_way *way);
