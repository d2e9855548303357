/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * network.h - a network as Podman describes it: `podman network inspect` shows the same JSON.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/error.h"
#include "lib/prefix.h"

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
