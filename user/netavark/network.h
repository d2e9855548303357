/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * network.h - a network as Podman describes it: `podman network inspect` shows the same JSON.
 */
#ifndef NETAVARK_NETWORK_H
#define NETAVARK_NETWORK_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

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
	uint8_t address[CNI_ADDRESS_SIZE];
	uint8_t prefix_length; /* in the address's own family */
	const char *text;      /* borrowed */
	const char *gateway;   /* borrowed; "" where missing */
};

/* Reads it. CNI_ERROR_DECODE for wrong types, CNI_ERROR_INVALID_CONFIGURATION,
 * CNI_ERROR_INVALID_ENVIRONMENT for names. */
int network_read(struct network *network, const json_t *root, struct cni_error *err);

/* Returns where its name server listens: at the gateways of its IPv4 subnets, and only without
 * these at those of IPv6, which must be waited for. Empty: it has no gateways. A new array. */
json_t *network_servers(const struct network *network);

/* Reads an element of network->subnets. The same errors. */
int subnet_read(struct subnet *subnet, const json_t *element, size_t index, struct cni_error *err);

/* Parses "10.89.0.0/24". False: it is none. */
bool subnet_parse(struct subnet *subnet, const char *text);

bool subnet_is_ipv4(const struct subnet *subnet);
/* Returns whether the address, or any of the other subnet's, is in the subnet. */
bool subnet_holds(const struct subnet *subnet, const uint8_t address[CNI_ADDRESS_SIZE]);
bool subnets_overlap(const struct subnet *one, const struct subnet *other);

#endif
