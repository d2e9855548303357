/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * option_table.h - what the configuration and the runtime ask for, as a plain struct.
 * option_table.c has the table of options; request.c reads what is asked for one container. Nothing
 * here does I/O.
 */
#pragma once

#include <linux/types.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"
#include "lib/address.h"
#include "conf/option_types.h"

/* An entry that the map portmaps is to get. Nobody owns it yet. */
struct port_claim {
	struct portmap_key key;
	struct portmap portmap;
	bool without_host_address; /* no hostIP was given: one claim for each family */
	uint32_t mapping;          /* the entry of runtimeConfig.portMappings that it comes from */
};

/* Begins as {0}. */
struct conf {
	bool masquerade4; /* ipMasq4, else ipMasq */
	bool masquerade6;
	bool snat;
	struct policy policy; /* as it stands in the map, without owner; all zero: the defaults */
	enum attach_mode attach;
	enum fast_path fast_path;
	bool strict;             /* from uplinks it is reached by its ports alone */
	bool localhost;          /* the host's own processes reach the ports */
	bool reserve_host_ports; /* and cannot bind to them */
	bool refuse_foreign;     /* ports that others' NAT rules have are not taken */
	uint32_t flow_entries;   /* a power of two, MIN_ASSURED to MAX_ASSURED; 0: not given */

	char uplinks[CONF_NAMES_SIZE]; /* none: every interface that can be one */
	char excluded_interfaces[CONF_NAMES_SIZE];

	struct port_range never_ports[MASQUERADE_RANGES]; /* that no mapping may have */
	bool never_ports_given;

	/* What the runtime asks for this container. */
	struct port_claim *ports; /* each key once, sorted */
	size_t port_count;
	/* Another plugin limits, or may limit without our knowing, what the container's veth lets
	 * through: packets must pass its qdiscs. */
	bool may_limit_bandwidth;
	bool egress_limited;      /* for what the container sends */
	struct workload workload; /* whose container it is, as CNI_ARGS say */

	json_t *warnings; /* strings, for stderr: one line each, without newline */
};

/* Up to a row without a name. */
extern const struct option conf_options[];

/* Reads the options alone, for STATUS. CNI_ERROR_UNSUPPORTED_FIELD, CNI_ERROR_DECODE,
 * CNI_ERROR_INVALID_CONFIGURATION. Release conf also after a failure. */
int conf_parse_options(struct conf *conf, const json_t *config, struct cni_error *err);
void conf_release(struct conf *conf);
