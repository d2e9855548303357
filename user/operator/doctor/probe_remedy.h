/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * probe_remedy.h - what opens a firewall that drops all that nobody has let through. A rule that
 * drops some on purpose is not for us to open.
 */
#ifndef OPERATOR_DOCTOR_PROBE_REMEDY_H
#define OPERATOR_DOCTOR_PROBE_REMEDY_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/address.h"
#include "operator/kernel/nft_trace.h"

/* What is to be let through, and by what it was dropped. */
struct opening {
	const struct nft_drop *drop;
	bool ipv4, is_answer, is_outwards;
	const char *in, *out;              /* interfaces */
	const char *container_side;        /* one of them */
	uint8_t address[CNI_ADDRESS_SIZE]; /* the container's; only inwards */
	const char *protocol;
	uint16_t port;
};

/* malloc'ed. */
char *probe_remedy(const struct opening *opening);

#endif
