/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* published_ports.c - which ports are worth a look-up for packets and sockets. */
#include "datapath/records/published_ports.h"

#include "datapath/load/maps.h"
#include "lib/address.h"

static void mark(uint64_t *third, uint16_t port)
{
	third[port / 64] |= 1ULL << (port % 64);
}

/* The entries of containers that wait for a port count, too: when one of them gets it, no bit is
 * set again. */
static int find_wanted(const struct objects *objects, uint64_t wanted[PUBLISHED_WORDS],
		       struct cni_error *err)
{
	cleanup_walk struct map_walk ports = {.objects = objects, .map = MAP_PORTMAPS};
	cleanup_walk struct map_walk taken = {.objects = objects, .map = MAP_NAT_PORTS};

	while (map_next(&ports, err)) {
		const struct portmap_key *key = ports.key;

		mark(wanted, key->host_port);
		if (!cni_address_is_any(key->host_address))
			mark(wanted + PORT_WORDS, key->host_port);
	}
	while (!ports.failed && map_next(&taken, err))
		mark(wanted + 2 * PORT_WORDS, ((const struct portmap_key *)taken.key)->host_port);
	return ports.failed || taken.failed ? -1 : 0;
}

int published_ports_forget(const struct objects *objects, struct cni_error *err)
{
	cleanup_walk struct map_walk words = {.objects = objects, .map = MAP_PUBLISHED_PORTS};
	uint64_t wanted[PUBLISHED_WORDS] = {0};

	if (find_wanted(objects, wanted, err))
		return -1;
	while (map_next(&words, err)) {
		uint32_t number = *(const uint32_t *)words.key;
		uint64_t bits = *(const uint64_t *)words.value, left = bits & wanted[number];

		if (left != bits && map_write(objects, MAP_PUBLISHED_PORTS, &number, &left, err))
			return -1;
	}
	return words.failed ? -1 : 0;
}
