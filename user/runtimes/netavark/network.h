/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* network.h - a network as Podman describes it: `podman network inspect` shows the same JSON. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/address.h"
#include "lib/error.h"

/* Begins as {0}. Everything is borrowed; text that is missing is "". */
struct network {
	const char *name; /* valid */
	const char *id;
	const char *bridge; /* the host's interface: valid, or "" */
	const char *ipam;   /* the driver that chooses addresses */
	bool internal;
	bool ipv6_enabled;
	bool dns_enabled; /* containers are to find each other by name */
	/* NULL where missing. */
	json_t *subnets;
	json_t *routes;
	json_t *options; /* of `podman network create -o` */
	json_t *dns_servers;
};

struct subnet {
	struct prefix prefix;
	const char *text;    /* borrowed */
	const char *gateway; /* borrowed; "" where missing */
};

/* Reads it. CNI_ERROR_DECODE for wrong types, CNI_ERROR_INVALID_CONFIGURATION,
 * CNI_ERROR_INVALID_ENVIRONMENT for names. */
int network_read(struct network *network, const json_t *root, struct cni_error *err);

/* Returns where its name server listens: at the gateways of its IPv4 subnets, and only without
 * these at those of IPv6, which must be waited for. Empty: it has no gateways. A new array. */
json_t *network_servers(const struct network *network);

/* Reads an element of network->subnets. The same errors. */
int subnet_read(struct subnet *subnet, const json_t *element, size_t index, struct cni_error *err);

/* --- its interface on the host -------------------------------------------------------------- */

/* Returns a name of a bridge for the network with this ID, the first one, or the one after
 * `others`: "podman" and digits of a digest, as rules of firewalls may be about podman*. malloc'ed.
 */
char *bridge_name_of(const char *id, unsigned int others);

bool bridge_exists(const char *name);

/* Returns how many interfaces are connected to it; SIZE_MAX where that cannot be told. */
size_t bridge_count_ports(const char *name);

/* Waits until no more than these are, for two seconds at most: the kernel removes interfaces of a
 * namespace that is gone a moment later, and on a busy machine much later. */
void bridge_wait_for_ports(const char *name, size_t ports);

/* Removes an unused bridge, which the CNI plugin bridge never does. The caller holds the lock of
 * the network. Warns on stderr of what keeps it from doing so. */
void bridge_remove(const char *name);

/* Removes the rules that keep isolated networks from each other: the CNI plugin firewall makes two
 * for each bridge and family, and never removes them, so that a later network with a bridge of that
 * name would have them. Call it when no container uses the bridge any more. Rules that are not
 * there are no error. */
void bridge_remove_rules(const char *bridge);
