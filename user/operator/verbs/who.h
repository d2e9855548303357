/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * who.h - what `bpf-portmap who` has found, and printing it.
 *
 * Packets from outside meet our programs first, then the rules of NAT before routing, then sockets.
 * Connections of the host's own processes meet the programs at sockets ("localhost") first, then
 * the rules of NAT where they are sent, then sockets. The programs pass what was written down to be
 * a rule's (host/foreign_nat.h). Our mapping of an address goes before that of any address, and so
 * does a socket's.
 */
#pragma once

#include <linux/types.h>

#include "abi.h"
#include "host/host.h"
#include "lib/error.h"
#include "nat/nat_rules.h"
#include "net/address_list.h"
#include "net/processes.h"
#include "net/sockets.h"
#include "operator/options.h"
#include "operator/view/mappings.h"

/* Who else could have the port: sockets, and rules of NAT (portmap's, Docker's, netavark's,
 * kube-proxy's). Begins as {0}. */
struct claimants {
	/* What is asked. */
	const struct address_list *addresses; /* of the host */
	struct portmap_key *keys;             /* malloc'ed */
	size_t key_count;
	/* What was found. */
	struct socket_list sockets; /* that have one of the ports */
	struct nat_rule_list rules; /* in the order in which packets meet them */
};

enum contestant_kind {
	CONTESTANT_MAPPING,
	CONTESTANT_RULE,
	CONTESTANT_SOCKET,
};

/* Where packets come from. */
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
	const char *by;                   /* "bpf-portmap", "process", or claimant_engine() */
	const uint8_t *address;           /* any: of its family */
	enum protocol protocol;           /* 0: any */
	const struct mapping *mapping;    /* CONTESTANT_MAPPING */
	const struct policy *policy;      /* of its container; NULL: none */
	bool alive;                       /* its container lives */
	bool serves_host;                 /* processes of the host reach it */
	const struct nat_rule *rule;      /* CONTESTANT_RULE */
	const struct host_socket *socket; /* CONTESTANT_SOCKET */
	struct contest_score scores[ORIGIN_COUNT];
};

struct who {
	const struct options *options;
	struct port_option port;
	bool has_address;
	uint8_t address[CNI_ADDRESS_SIZE];
	struct host host;
	struct view view; /* of the host's datapath */
	struct mappings mappings;
	struct claimants claimants;
	struct contestant *contestants; /* mappings, then rules, then sockets */
	size_t count;
	size_t places; /* addresses of the host that were asked for */
	bool blind;    /* something could not be read */
};

/* Returns whether the contestant takes the port; a mapping of a container that has gone does
 * not. */
bool who_counts(const struct contestant *contestant);

/* Prints what was found. CNI_ERROR_IO. */
int who_print(struct who *who, bool taken, struct cni_error *err);
