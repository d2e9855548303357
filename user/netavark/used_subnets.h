/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * used_subnets.h - which subnets are in use, and one that is not. Podman chooses subnets for its
 * own drivers alone.
 */
#ifndef NETAVARK_USED_SUBNETS_H
#define NETAVARK_USED_SUBNETS_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/error.h"
#include "netavark/network.h"

/* Begins as {0}. */
struct used_subnets {
	struct used_subnet {
		struct subnet subnet; /* its text and gateway are not kept */
		char *user;           /* "interface eth0", "network web" */
	} * subnets;
	size_t count;
};

/* Finds the subnets of the host's interfaces, and those of Podman's networks in the folder where
 * Podman keeps them by default. What cannot be read is left out. */
void used_subnets_find(struct used_subnets *used);
void used_subnets_release(struct used_subnets *used);

#define cleanup_used_subnets __attribute__((cleanup(used_subnets_release)))

/* Returns one that overlaps with the subnet, or NULL. */
const struct used_subnet *used_subnets_overlap(const struct used_subnets *used,
					       const struct subnet *subnet);

/* Chooses a free subnet of the family: a /24 of Podman's default pools, 10.89.0.0 to
 * 10.255.255.0, or a /64 of fd00::/8. Where the search begins follows from the network's ID,
 * because networks may be kept in a folder that is not looked at. A malloc'ed text, or NULL and
 * CNI_ERROR_INVALID_CONFIGURATION. */
char *used_subnets_choose(const struct used_subnets *used, bool ipv4, const char *id,
			  struct cni_error *err);

#endif
