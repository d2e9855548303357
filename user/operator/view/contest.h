/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * contest.h - who gets what comes to a port that several claim. Without any I/O.
 *
 * Packets from outside meet our programs first, then the rules of NAT before routing, then sockets.
 * Connections of the host's own processes meet the programs at sockets ("localhost") first, then
 * sockets; rules of NAT for them (OUTPUT) are not known. Our mapping of an address goes before that
 * of any address, and so does a socket's.
 */
#ifndef OPERATOR_VIEW_CONTEST_H
#define OPERATOR_VIEW_CONTEST_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"
#include "lib/address.h"
#include "nat/nat_rule.h"
#include "net/sockets.h"

enum contestant_kind {
	CONTESTANT_MAPPING,
	CONTESTANT_RULE,
	CONTESTANT_SOCKET,
};

/* From where packets come. */
enum origin {
	ORIGIN_OUTSIDE,
	ORIGIN_HOST, /* its own processes */
	ORIGIN_COUNT,
};

/* How many addresses of the host it claims, and at how many of these it gets what comes. */
struct contest_score {
	unsigned int claimed, won;
	uint8_t lost_at[CNI_ADDRESS_SIZE]; /* the first */
};

struct contestant {
	enum contestant_kind kind;
	const struct portmap_key *key;    /* CONTESTANT_MAPPING */
	const struct policy *policy;      /* of its container; NULL: none */
	bool alive;                       /* its container is */
	bool serves_host;                 /* processes of the host reach it */
	const struct nat_rule *rule;      /* CONTESTANT_RULE */
	const struct host_socket *socket; /* CONTESTANT_SOCKET */
	struct contest_score scores[ORIGIN_COUNT];
};

/* An address of the host. */
struct contest_place {
	uint8_t address[CNI_ADDRESS_SIZE];
	bool is_mapped; /* bpf-portmap maps ports at it, unless a policy says otherwise */
};

/* Fills in the scores. Rules must stand in the order in which packets meet them. */
void contest_judge(struct contestant *contestants, size_t count, const struct contest_place *place,
		   enum protocol protocol, uint16_t port);

#endif
