/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * probe_client.h - as whom a probe is sent: real clients first.
 */
#pragma once

#include "operator/doctor/probe.h"

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
