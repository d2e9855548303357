/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * keys.h - what follows from the key of a connection, as abi.h and the theory of operation define
 * it: for the rows and the oracle.
 */
#pragma once

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "abi.h"

static inline uint64_t address_half(const uint8_t *address, int half)
{
	uint64_t word;

	memcpy(&word, address + 8 * half, sizeof(word));
	return word;
}

static inline bool address_is_ipv4(const uint8_t *address)
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	return memcmp(address, prefix, sizeof(prefix)) == 0;
}

static inline bool needs_alias(const struct connection_key *key,
			       const struct connection *connection)
{
	return (connection->kind != FLOW_MAPPING && connection->kind != FLOW_DIRECT) ||
	       connection->peer_port != key->outside_port;
}

static inline void external_key(const struct connection_key *key,
				const struct connection *connection,
				struct connection_key *external)
{
	*external = *key;
	memcpy(external->inside, connection->external_address, sizeof(external->inside));
	external->inside_port = connection->external_port;
	external->outside_port = connection->peer_port;
}

/* In `noticed` */
static inline uint32_t external_bit(const uint8_t *address)
{
	return address_hash(address_half(address, 0), address_half(address, 1)) %
	       (EXTERNAL_ADDRESS_WORDS * 64);
}

/* The programs' hash: any other would do for the counts, but the places must be the same. */
static inline uint64_t place_mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word ^ word >> 32) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 32;
}

static inline uint64_t place_mix_owner(uint64_t hash, const struct owner *owner)
{
	return place_mix(hash, (uint64_t)owner->generation << 32 | owner->slot);
}

static inline uint32_t account_of(const struct connection_key *key,
				  const struct connection *connection)
{
	return (connection->state & STATE_CHARGED_OUT ? ACCOUNT_OUT : 0) |
	       (key->protocol == PROTOCOL_TCP ? ACCOUNT_PROVEN : 0);
}

/* Indices in client_shares and port_shares; owner {0, 0}: of all owners. */
static inline uint32_t client_place(uint64_t seed, const struct connection_key *key,
				    const struct connection *connection)
{
	const uint8_t *client = connection->begun_inside ? key->inside : key->outside;
	uint64_t half = address_half(client, address_is_ipv4(client));

	seed += account_of(key, connection);
	return (uint32_t)(place_mix_owner(place_mix(seed, half), &connection->owner) % SHARES);
}

static inline uint64_t external_hash(uint64_t seed, const struct connection_key *external)
{
	uint64_t hash = seed;

	for (int half = 0; half < 2; half++)
		hash = place_mix(hash, address_half(external->outside, half));
	for (int half = 0; half < 2; half++)
		hash = place_mix(hash, address_half(external->inside, half));
	return place_mix(hash, (uint64_t)external->outside_port << 8 | external->protocol);
}

static inline uint32_t port_place(uint64_t seed, const struct connection_key *external,
				  const struct owner *owner)
{
	uint64_t hash = external_hash(seed, external);

	return (uint32_t)((owner->slot ? place_mix_owner(hash, owner) : hash) % SHARES);
}

/* Adds an alias to external_ports. */
static inline void external_ports_add(struct external_port *ports,
				      const struct connection_key *external,
				      const struct alias *alias, uint32_t by)
{
	bool tcp = external->protocol == PROTOCOL_TCP;

	if (external->protocol == PROTOCOL_ICMP || external->protocol == PROTOCOL_ICMPV6)
		return;
	ports[external->inside_port].aliases[tcp] += by;
	if (!alias->owner.slot && alias->inside_port != external->inside_port)
		ports[alias->inside_port].aliases[tcp] += by;
}

/* host_tunnel.h */
#define TUNNEL_PLACES 4096

struct tunnel_note {
	uint64_t hash;
	uint32_t seen;
	uint32_t refused;
	uint32_t sent;
	uint32_t reserved;
};
