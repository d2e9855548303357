/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conf.h - our own keys of the configuration and of runtimeConfig as a plain struct.
 *
 * Nothing here does I/O. DEL and GC need none of it: a mapping that ADD refused must
 * not keep DEL from succeeding.
 */
#ifndef PLUGIN_CONF_H
#define PLUGIN_CONF_H

#include <jansson.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"
#include "cni/address.h"
#include "cni/error.h"

/* Ranges that an option which is a set of ports may have. */
#define PORT_SET_RANGES MASQUERADE_RANGES

/* What hostIP says. */
enum host_address_kind {
	ANY_ADDRESS, /* missing or empty: the families that the container has */
	ANY_IPV4,    /* 0.0.0.0 */
	ANY_IPV6,    /* :: */
	ONE_ADDRESS,
};

/* One entry of runtimeConfig.portMappings. Ports in host byte order, never 0. */
struct port_mapping {
	enum protocol protocol;
	enum host_address_kind kind;
	uint16_t host_port;
	uint16_t container_port;
	uint8_t host_address[CNI_ADDRESS_SIZE]; /* as in portmap_key; ANY_ADDRESS: zero */
};

/* Names of interfaces and globs, as in fnmatch(3). */
struct interface_names {
	char **patterns;
	size_t count;
};

/* Begins as {0}. */
struct conf {
	bool masquerade4; /* ipMasq4, else ipMasq */
	bool masquerade6;
	struct policy policy; /* as it stands in the map, without owner; all zero: the defaults */
	enum attach_mode attach;
	enum fast_path fast_path;
	bool strict;             /* from uplinks it is reached by its ports alone */
	bool localhost;          /* the host's own processes reach the ports */
	bool reserve_host_ports; /* and cannot bind to them */
	bool refuse_foreign;     /* ports that others' NAT rules have are not taken */
	uint32_t flow_entries;   /* a power of two, MIN_ASSURED to MAX_ASSURED; 0: not given */

	struct interface_names uplinks;             /* none: every interface that can be one */
	struct interface_names excluded_interfaces; /* excludeInterfaces, where it is given */
	bool excluded_interfaces_given;

	struct port_range never_ports[PORT_SET_RANGES]; /* that no mapping may have */
	bool never_ports_given;

	struct port_mapping *mappings; /* as given: an entry may be there twice */
	size_t mapping_count;

	bool bandwidth_limited;   /* runtimeConfig.bandwidth has a limit */
	bool egress_limited;      /* for what the container sends */
	bool bandwidth_declared;  /* our capabilities name bandwidth, so the above can be trusted */
	bool kubernetes;          /* CNI_ARGS names a pod */
	struct workload workload; /* whose container it is, as CNI_ARGS say */

	char **warnings; /* for stderr, one line each, without newline */
	size_t warning_count;
};

/* An entry of the map portmaps to be. Nobody owns it yet. */
struct port_claim {
	struct portmap_key key;
	uint8_t container_address[CNI_ADDRESS_SIZE];
	uint16_t container_port;
	bool localhost;
	bool reserved_on_host;
	uint32_t mapping; /* the entry of runtimeConfig.portMappings that it comes from */
};

/* "tcp"; for messages. */
const char *conf_protocol_name(enum protocol protocol);

/* Our options alone, for STATUS. Codes 2, 6, 7. */
int conf_parse_options(struct conf *conf, const json_t *config, struct cni_error *err);

/* Options and what the runtime asks for this container; `args` is CNI_ARGS. Codes 2,
 * 6, 7. Two mappings of one host port to different targets are refused here. */
int conf_parse(struct conf *conf, const json_t *config, const char *args, struct cni_error *err);
void conf_release(struct conf *conf);

/* As given, else kube-ipvs0 and nodelocaldns. */
const struct interface_names *conf_excluded_interfaces(const struct conf *conf);

/* Whether another plugin limits, or may limit without our knowing, what the container's veth lets
 * through: packets must pass its qdiscs. */
bool conf_may_limit_bandwidth(const struct conf *conf);

bool conf_is_glob(const char *pattern);

/* Whether a name or glob of the list is that of the interface. */
bool conf_names_interface(const struct interface_names *names, const char *interface);

/* Addresses that no packet to a mapped port can have: a mapping would stay silent. */
bool conf_is_never_mapped(const uint8_t address[CNI_ADDRESS_SIZE]);

/* Adds a line to the warnings. */
int conf_warn(struct conf *conf, struct cni_error *err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The mappings as map entries for a container with these addresses (NULL: it has none
 * of that family), each key once, sorted. *claims is malloc'ed. 7 where a mapping cannot
 * be had: no address at all, or hostIP of a family the container lacks; 0.0.0.0 and ::
 * are skipped then, with a warning added to conf. */
int conf_claim_ports(struct conf *conf, const uint8_t *container_ipv4,
		     const uint8_t *container_ipv6, struct port_claim **claims, size_t *claim_count,
		     struct cni_error *err);

#endif
