/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * who.h - what `bpf-portmap who` has found, and printing it.
 */
#ifndef OPERATOR_WHO_H
#define OPERATOR_WHO_H

#include "host/host.h"
#include "operator/view/claimants.h"
#include "operator/view/contest.h"
#include "operator/view/mappings.h"
#include "operator/options.h"

struct who {
	const struct options *options;
	struct port_option port;
	bool has_address;
	uint8_t address[CNI_ADDRESS_SIZE];
	struct host host;
	struct view view; /* of the host's datapath */
	struct mappings mappings;
	struct port_question question;
	struct claimants claimants;
	struct contestant *contestants; /* mappings, then rules, then sockets */
	size_t count;
	size_t places; /* addresses of the host that were asked for */
	bool blind;    /* something could not be read */
};

/* Whether the port is taken because of it: mappings of containers that have gone do not count. */
bool who_counts(const struct contestant *contestant);

/* CNI_ERROR_IO. */
int who_print(struct who *who, bool taken, struct cni_error *err);

#endif
