/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* world.h - the model that the oracle judges by: contents of the maps, and the host around. */
#pragma once

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "../packet/host.h"
#include "abi.h"

#define WORLD_SLOTS 6 /* 1 to 5 */
#define WORLD_ENDPOINTS 10
#define WORLD_INTERFACES 9
#define WORLD_PORTMAPS 16
#define WORLD_CONNECTIONS 128
#define WORLD_ALIASES 128
#define WORLD_HALF_OPEN 32 /* at most */
#define WORLD_ASSURED 256
#define WORLD_SIZES 3

/* A packet's tuple, on one side of the IP stack. */
struct tuple {
	uint8_t source[16];
	uint8_t destination[16];
	uint16_t source_port;
	uint16_t destination_port;
	enum protocol protocol;
	enum direction direction;
};

struct world_endpoint {
	bool present;
	struct endpoint_key key;
	struct endpoint value;
};

struct world_interface {
	bool present;
	uint32_t ifindex;
	struct interface value;
};

struct world_portmap {
	struct portmap_key key;
	struct portmap value;
};

struct world_connection {
	struct connection_key key;
	struct connection value;
};

struct world_alias {
	struct connection_key key;
	struct alias value;
};

struct world_size {
	uint32_t half_open_places;
	uint32_t assured_places;
};

struct world {
	int size; /* of world_sizes */
	struct slot slots[WORLD_SLOTS];
	bool veth_gone[WORLD_SLOTS];
	bool has_policy[WORLD_SLOTS];
	struct policy policies[WORLD_SLOTS];
	struct world_endpoint endpoints[WORLD_ENDPOINTS];
	uint64_t endpoint_addresses[PORT_WORDS];
	struct world_interface interfaces[WORLD_INTERFACES];
	struct world_portmap portmaps[WORLD_PORTMAPS];
	int portmap_count;
	uint64_t published_ports[PUBLISHED_WORDS];
	struct world_connection connections[WORLD_CONNECTIONS];
	int connection_count;
	struct world_alias aliases[WORLD_ALIASES];
	int alias_count;
	struct half_open half_open[WORLD_HALF_OPEN + 1];
	struct assured assured[WORLD_ASSURED + 1];
	struct share shares[WORLD_SLOTS];
	struct usage usage;
	struct port_range ranges[MASQUERADE_RANGES];
	uint64_t port_seed;
	struct noticed noticed;
	uint16_t surplus_port; /* counts one alias more than there is; 0: none */
	/* The record of the present fragment's datagram; last_seen 0: none */
	struct fragment fragment;
	bool with_paths; /* packets may skip the IP stack: only invariants are checked */
	uint32_t now;    /* the kernel's clock, seconds */
	/* For the generator */
	bool busy;    /* nothing in the tables is dead or closed */
	bool crowded; /* masqueraded flows share three ports towards one port of one server */
};

extern const struct world_size world_sizes[WORLD_SIZES];

static inline const struct world_size *world_places(const struct world *world)
{
	return &world_sizes[world->size];
}

/* As bpf_fib_lookup(): the egress interface; 0: the destination is this host. */
uint32_t world_route(const uint8_t *destination);

/* The MAC of its next hop, if that is known; NULL: not */
const uint8_t *world_next_hop(const uint8_t *destination);

/* Those that the programs know, not broadcast ones; the last one is NULL. */
extern const char *const world_host_addresses[];
bool world_is_host(const uint8_t *address);

/* bits: of an IPv4 or IPv6 address */
bool world_same_subnet(const uint8_t *a, const uint8_t *b, int bits);

/* The source address that a socket of the host would get; false: none. */
bool world_source(const struct world *world, uint32_t device, const uint8_t *destination,
		  uint8_t *address);

/* The host's sockets; the last one has no address. */
extern const struct host_socket world_sockets[];

enum world_socket_found { SOCKET_NONE, SOCKET_OF_ANYBODY, SOCKET_OF_PEER };
/* The socket that would receive a packet with this tuple. */
enum world_socket_found world_socket(const struct tuple *tuple);

/* NULL: there is none. */
const struct endpoint *world_endpoint(const struct world *world, const uint8_t *address);
const struct interface *world_interface(const struct world *world, uint32_t ifindex);
/* Of a live owner, at exactly this address, which may be 0.0.0.0 or ::. */
const struct portmap *world_mapping_at(const struct world *world, uint8_t protocol,
				       const uint8_t *address, uint16_t port);
/* Of this address, else of all addresses; of an owner whose veth exists. */
const struct portmap *world_mapping(const struct world *world, uint8_t protocol,
				    const uint8_t *address, uint16_t port);
void world_any_address(uint8_t *any, const uint8_t *address);

/* NULL: all defaults. */
const struct policy *world_policy(const struct world *world, const struct owner *owner);
/* Whether a list of ranges matches the address: the first range that contains it decides. */
bool world_in_ranges(const struct address_range *ranges, int count, const uint8_t *address);

bool world_owner_live(const struct world *world, const struct owner *owner);

void world_address(uint8_t *address, const char *text);
