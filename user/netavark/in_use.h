/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * in_use.h - which subnets and bridges networks and interfaces have, and subnets that nobody has.
 * Podman looks after those of its own drivers alone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/error.h"
#include "netavark/network.h"

/* Begins as {0}. */
struct in_use {
	struct used_subnet {
		struct prefix prefix;
		char *user; /* "that of interface eth0" */
	} * subnets;
	size_t subnet_count;
	struct used_bridge {
		char *name;
		char *user; /* "network web" */
	} * bridges;
	size_t bridge_count;
};

/* Finds what the host's interfaces have, and Podman's networks in the folder where Podman keeps
 * them by default. What cannot be read is left out. */
void in_use_find(struct in_use *used);
void in_use_release(struct in_use *used);

#define cleanup_in_use __attribute__((cleanup(in_use_release)))

/* Adds a subnet; takes over `user`, which is malloc'ed. */
void in_use_add_subnet(struct in_use *used, const struct prefix *prefix, char *user);

/* Returns who has a subnet that overlaps with the prefix, or NULL. */
const char *in_use_subnet(const struct in_use *used, const struct prefix *prefix);

/* Returns who has an interface of that name on the host, or will have, or NULL. */
const char *in_use_bridge(const struct in_use *used, const char *name);

/* Chooses a free subnet of the family: a /24 of Podman's default pools, 10.89.0.0 to
 * 10.255.255.0, or a /64 of fd00::/8. Where the search begins follows from the network's ID,
 * because networks may be kept in a folder that is not looked at. A malloc'ed text, or NULL and
 * CNI_ERROR_INVALID_CONFIGURATION. */
char *in_use_choose_subnet(const struct in_use *used, bool ipv4, const char *id,
			   struct cni_error *err);
