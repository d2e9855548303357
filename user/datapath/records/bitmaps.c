/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bitmaps.c - which ports and addresses are worth a look-up. */
#include "datapath/records/bitmaps.h"

#include <string.h>

#include "datapath/load/maps.h"
#include "lib/address.h"

/* The words of published_ports from here on are of the ports that the host's NAT takes. */
#define NAT_PORT_WORDS (2 * PORT_WORDS)

static void mark(uint64_t *words, uint16_t number)
{
	words[number / 64] |= 1ULL << (number % 64);
}

static void mark_port(uint64_t published[PUBLISHED_WORDS], const struct portmap_key *key)
{
	mark(published, key->host_port);
	if (!cni_address_is_any(key->host_address))
		mark(published + PORT_WORDS, key->host_port);
}

static void mark_address(uint64_t addresses[PORT_WORDS], const struct endpoint_key *key)
{
	uint64_t halves[2];

	memcpy(halves, key->address, sizeof(halves));
	mark(addresses, address_hash(halves[0], halves[1]));
}

static int set_bits(const struct objects *objects, enum map_number map, const uint64_t *wanted,
		    uint32_t words, struct cni_error *err)
{
	for (uint32_t number = 0; number < words; number++)
		if (wanted[number] && map_set_bits(objects, map, number, wanted[number], err))
			return -1;
	return 0;
}

int bitmaps_mark(const struct objects *objects, const struct attachment_claims *claims,
		 struct cni_error *err)
{
	uint64_t published[PUBLISHED_WORDS] = {0}, addresses[PORT_WORDS] = {0};

	for (size_t i = 0; i < claims->endpoint_count; i++)
		mark_address(addresses, &claims->endpoints[i].key);
	for (size_t i = 0; i < claims->port_count; i++)
		mark_port(published, &claims->ports[i].key);
	return set_bits(objects, MAP_ENDPOINT_ADDRESSES, addresses, PORT_WORDS, err) ||
			       set_bits(objects, MAP_PUBLISHED_PORTS, published, PUBLISHED_WORDS,
					err)
		       ? -1
		       : 0;
}

int bitmaps_mark_nat_port(const struct objects *objects, uint16_t port, struct cni_error *err)
{
	return map_set_bits(objects, MAP_PUBLISHED_PORTS, NAT_PORT_WORDS + port / 64,
			    1ULL << (port % 64), err);
}

/* The entries of containers that wait for a port count, too: when one of them gets it, no bit is
 * set again. */
static int find_ports(const struct objects *objects, uint64_t published[PUBLISHED_WORDS],
		      struct cni_error *err)
{
	cleanup_walk struct map_walk ports = {.objects = objects, .map = MAP_PORTMAPS};
	cleanup_walk struct map_walk taken = {.objects = objects, .map = MAP_NAT_PORTS};

	while (map_next(&ports, err))
		mark_port(published, ports.key);
	while (!ports.failed && map_next(&taken, err))
		mark(published + NAT_PORT_WORDS,
		     ((const struct portmap_key *)taken.key)->host_port);
	return ports.failed || taken.failed ? -1 : 0;
}

static int find_addresses(const struct objects *objects, uint64_t addresses[PORT_WORDS],
			  struct cni_error *err)
{
	cleanup_walk struct map_walk endpoints = {.objects = objects, .map = MAP_ENDPOINTS};

	while (map_next(&endpoints, err))
		mark_address(addresses, endpoints.key);
	return endpoints.failed ? -1 : 0;
}

static int clear_others(const struct objects *objects, enum map_number map, const uint64_t *wanted,
			struct cni_error *err)
{
	cleanup_walk struct map_walk words = {.objects = objects, .map = map};

	while (map_next(&words, err)) {
		uint32_t number = *(const uint32_t *)words.key;
		uint64_t bits = *(const uint64_t *)words.value, left = bits & wanted[number];

		if (left != bits && map_write(objects, map, &number, &left, err))
			return -1;
	}
	return words.failed ? -1 : 0;
}

int bitmaps_forget(const struct objects *objects, struct cni_error *err)
{
	uint64_t published[PUBLISHED_WORDS] = {0}, addresses[PORT_WORDS] = {0};

	return find_ports(objects, published, err) || find_addresses(objects, addresses, err) ||
			       clear_others(objects, MAP_PUBLISHED_PORTS, published, err) ||
			       clear_others(objects, MAP_ENDPOINT_ADDRESSES, addresses, err)
		       ? -1
		       : 0;
}
