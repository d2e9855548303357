/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * world.h - what stands in the maps and around the host, as far as the fuzzer knows; what
 * the oracle judges by.
 */
#ifndef BPF_PORTMAP_TESTS_WORLD_H
#define BPF_PORTMAP_TESTS_WORLD_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "abi.h"

#define WORLD_SLOTS 6 /* 1 to 5 */
#define WORLD_ENDPOINTS 10
#define WORLD_INTERFACES 9
#define WORLD_PORTMAPS 16
#define WORLD_FLOWS 192

enum table { NEW, ANSWERED, TABLES };

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

struct world_flow {
	enum table table;
	struct flow_key key;
	struct flow value;
};

struct world {
	struct slot slots[WORLD_SLOTS];
	bool has_policy[WORLD_SLOTS];
	struct policy policies[WORLD_SLOTS];
	struct world_endpoint endpoints[WORLD_ENDPOINTS];
	struct world_interface interfaces[WORLD_INTERFACES];
	struct world_portmap portmaps[WORLD_PORTMAPS];
	int portmap_count;
	struct world_flow flows[WORLD_FLOWS];
	int flow_count;
	struct port_range ranges[MASQUERADE_RANGES];
	struct noticed noticed;
	/* What is known of the datagram of the fragment at hand; last_seen 0: nothing */
	struct fragment fragment;
	bool with_paths; /* flows skip the IP stack: of them only the invariants are asked */
	uint32_t now;    /* the kernel's clock, seconds */
};

/* What bpf_fib_lookup() says; 0: it is this host's. */
uint32_t world_route(const uint8_t *destination);

/* The number of leading bits counts in the address's own family. */
bool world_same_subnet(const uint8_t *a, const uint8_t *b, int bits);

/* The address that a socket of the host would leave with; false: none. */
bool world_source(const struct world *world, uint32_t device, const uint8_t *destination,
		  uint8_t *address);

struct world_socket {
	int protocol;
	const char *address;
	uint16_t port;
	const char *peer; /* NULL: of anybody */
	uint16_t peer_port;
};

/* The host's sockets; the last one has no address. */
extern const struct world_socket world_sockets[];

enum world_socket_found { SOCKET_NONE, SOCKET_OF_ANYBODY, SOCKET_OF_PEER };
/* Who takes a packet with this tuple. */
enum world_socket_found world_socket(const struct flow_key *tuple);

/* NULL: there is none. */
const struct endpoint *world_endpoint(const struct world *world, const uint8_t *address);
const struct interface *world_interface(const struct world *world, uint32_t ifindex);
const struct portmap *world_mapping(const struct world *world, uint8_t protocol,
				    const uint8_t *address, uint16_t port);
struct world_flow *world_flow(struct world *world, enum table table, const struct flow_key *key);

/* NULL: all defaults. */
const struct policy *world_policy(const struct world *world, const struct owner *owner);
/* Whether a list of ranges means the address: the first one that holds it decides. */
bool world_in_ranges(const struct address_range *ranges, int count, const uint8_t *address);

/* Has a masqueraded flow left with this port? */
bool world_noticed(const struct world *world, uint16_t port);

bool world_owner_live(const struct world *world, const struct owner *owner);
bool world_flow_live(const struct world *world, const struct world_flow *flow);
/* The one that counts for the tuple. */
const struct world_flow *world_live_flow(const struct world *world, const struct flow_key *key);

/* The tuple, and the value, of the entry that does the reverse of this one. */
void world_other_half(const struct flow_key *key, const struct flow *flow, struct flow_key *other,
		      struct flow *other_flow);
bool world_same_translation(const struct flow *a, const struct flow *b);

void world_address(uint8_t *address, const char *text);

#endif
