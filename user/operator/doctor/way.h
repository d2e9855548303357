/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * way.h - what a look tells about the way from an uplink into a container, and back.
 *
 * A packet that was sent (probe.h) tells whether the way is open and where it ends; a look tells
 * why, and what mends it. Where no packet is sent it is all that is known.
 */
#pragma once

#include "operator/doctor/doctor.h"

/* The first thing that is wrong on the way. Begins as {0}. */
struct diagnosis {
	char *text;            /* malloc'ed; NULL: nothing is wrong as far as one sees */
	char *remedy;          /* malloc'ed; NULL: none */
	const char *code;      /* of --explain; NULL: by what became of the packet */
	bool by_look;          /* the host was looked at */
	bool is_not_looked_at; /* the text says what could not be looked at */
};

void diagnosis_release(struct diagnosis *diagnosis);

#define cleanup_diagnosis __attribute__((cleanup(diagnosis_release)))

/* Looks at the way from the uplink into the container, in a packet's order, and at the container's
 * route back to the client. `uplink` NULL: the packet comes from this host. */
void way_diagnose(struct doctor *doctor, const struct subject *subject, const struct link *uplink,
		  const uint8_t client[CNI_ADDRESS_SIZE], struct diagnosis *diagnosis);

/* Looks whether the container, which is silent, waits for the MAC of its gateway. */
void way_diagnose_gateway(struct doctor *doctor, const struct subject *subject,
			  const uint8_t client[CNI_ADDRESS_SIZE], struct diagnosis *diagnosis);

/* Looks whether a bridge keeps the subject's answers from a neighbour that asks it, which are
 * switched, not routed. */
void way_diagnose_isolation(const struct subject *subject, const struct subject *asker,
			    struct diagnosis *diagnosis);

/* Returns the container whose interface has this MAC, or where it is NULL whose veth is this one;
 * NULL: there is none. */
const struct container_info *way_container(struct doctor *doctor, uint32_t veth,
					   const uint8_t *mac);

/* Looks for the socket that takes the packet in the container. It finds nothing wrong with SCTP,
 * which programs may have in user space. */
void way_diagnose_listener(struct doctor *doctor, const struct subject *subject,
			   struct diagnosis *diagnosis);

/* Returns the sockets of the container, which are read at the first call; NULL: they are not known.
 */
const struct socket_list *way_sockets(struct doctor *doctor, const struct subject *subject);

/* Looks whether that socket's program runs: the kernel completes handshakes for one that was
 * stopped or frozen, too. Reads the open files of every process. */
void way_diagnose_program(struct doctor *doctor, const struct subject *subject,
			  struct diagnosis *diagnosis);
