/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* world.c - look-ups in the model. */
#include "world.h"

#include <arpa/inet.h>
#include <err.h>
#include <netinet/in.h>
#include <string.h>

#include "../packet/host.h"
#include "wire.h"

void world_address(uint8_t *address, const char *text)
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	if (inet_pton(AF_INET6, text, address) == 1)
		return;
	memcpy(address, prefix, sizeof(prefix));
	if (inet_pton(AF_INET, text, address + 12) != 1)
		errx(1, "not an address: %s", text);
}

/* The routing table of tests/packet/host.c, longest prefix first */
static const struct {
	const char *prefix;
	int length;
	uint32_t device;
	bool local; /* also broadcast, and IPv6's subnet-router anycast */
} routes[] = {
	{v4_host, 32, UPLINK, true},
	{v4_host_other, 32, UPLINK, true},
	{v4_second_uplink, 32, SECOND_UPLINK, true},
	{v4_unclassified, 32, UNCLASSIFIED, true},
	{v4_bridge, 32, BRIDGE, true},
	{"10.20.0.1", 32, VETH_ROUTED, true},
	{"192.0.2.255", 32, UPLINK, true},
	{"203.0.113.255", 32, SECOND_UPLINK, true},
	{"172.16.0.255", 32, UNCLASSIFIED, true},
	{"10.10.255.255", 32, BRIDGE, true},
	{v4_container_routed, 32, VETH_ROUTED, false},
	{"192.0.2.0", 24, UPLINK, false},
	{"203.0.113.0", 24, SECOND_UPLINK, false},
	{"172.16.0.0", 24, UNCLASSIFIED, false},
	{"10.10.0.0", 16, BRIDGE, false},
	{"0.0.0.0", 0, UPLINK, false},
	{v6_host, 128, UPLINK, true},
	{v6_second_uplink, 128, SECOND_UPLINK, true},
	{v6_bridge, 128, BRIDGE, true},
	{"fd00:20::1", 128, VETH_ROUTED, true},
	{"2001:db8:1::", 128, UPLINK, true},
	{"2001:db8:2::", 128, SECOND_UPLINK, true},
	{"fd00:10::", 128, BRIDGE, true},
	{v6_container_routed, 128, VETH_ROUTED, false},
	{"2001:db8:1::", 64, UPLINK, false},
	{"2001:db8:2::", 64, SECOND_UPLINK, false},
	{"fd00:10::", 64, BRIDGE, false},
	{"::", 0, UPLINK, false},
};

#define ROUTES (sizeof(routes) / sizeof(routes[0]))

bool world_same_subnet(const uint8_t *a, const uint8_t *b, int bits)
{
	bits += address_is_ipv4(a) ? 96 : 0;
	for (int i = 0; i < 16; i++) {
		int left = bits - i * 8;

		if (left <= 0)
			return true;
		if (left >= 8 ? a[i] != b[i] : (a[i] ^ b[i]) >> (8 - left))
			return false;
	}
	return true;
}

/* device: only its routes; 0: all. Returns 0 for addresses of the host or without a route. */
static uint32_t route_by(const uint8_t *destination, uint32_t device)
{
	static uint8_t prefixes[ROUTES][16];
	static bool parsed;

	for (size_t i = 0; i < ROUTES && !parsed; i++)
		world_address(prefixes[i], routes[i].prefix);
	parsed = true;
	for (size_t i = 0; i < ROUTES; i++) {
		if (address_is_ipv4(prefixes[i]) == address_is_ipv4(destination) &&
		    (!device || routes[i].device == device) &&
		    world_same_subnet(prefixes[i], destination, routes[i].length))
			return routes[i].local ? 0 : routes[i].device;
	}
	return 0;
}

uint32_t world_route(const uint8_t *destination)
{
	return route_by(destination, 0);
}

const uint8_t *world_next_hop(const uint8_t *destination)
{
	static const char *const prefixes[] = {"192.0.2.0", "2001:db8:1::"};
	bool ipv4 = address_is_ipv4(destination);
	uint8_t address[16];

	switch (world_route(destination)) {
	case UPLINK:
		world_address(address, prefixes[!ipv4]);
		return world_same_subnet(address, destination, ipv4 ? 24 : 64)
			       ? NULL
			       : host_neighbour_mac();
	case BRIDGE:
		world_address(address, ipv4 ? v4_container_one : v6_container_one);
		return memcmp(address, destination, 16) ? NULL : host_container_mac(VETH_ONE);
	case VETH_ROUTED:
		return host_container_mac(VETH_ROUTED);
	default:
		return NULL;
	}
}

const char *const world_host_addresses[] = {
	v4_host, v4_host_other,    v4_second_uplink, v4_unclassified, v4_bridge, "10.20.0.1",
	v6_host, v6_second_uplink, v6_bridge,        "fd00:20::1",    NULL};

bool world_is_host(const uint8_t *address)
{
	uint8_t own[16];

	for (int i = 0; world_host_addresses[i]; i++) {
		world_address(own, world_host_addresses[i]);
		if (memcmp(own, address, 16) == 0)
			return true;
	}
	return false;
}

static const char *device_address(uint32_t device, bool ipv4)
{
	switch (device) {
	case UPLINK:
		return ipv4 ? v4_host : v6_host;
	case SECOND_UPLINK:
		return ipv4 ? v4_second_uplink : v6_second_uplink;
	case BRIDGE:
		return ipv4 ? v4_bridge : v6_bridge;
	case VETH_ROUTED:
		return ipv4 ? "10.20.0.1" : "fd00:20::1";
	case UNCLASSIFIED:
		return ipv4 ? v4_unclassified : NULL;
	default:
		return NULL;
	}
}

bool world_source(const struct world *world, uint32_t device, const uint8_t *destination,
		  uint8_t *address)
{
	static const uint8_t none[16];
	const struct interface *interface = world_interface(world, device);
	bool ipv4 = address_is_ipv4(destination);
	/* For IPv6 the egress interface is only a preference if it has no route. */
	const char *text = device_address(route_by(destination, ipv4 ? device : 0), ipv4);

	if (text) {
		world_address(address, text);
		return true;
	}
	if (!interface)
		return false;
	memcpy(address, ipv4 ? interface->address4 : interface->address6, 16);
	return memcmp(address, none, 16) != 0;
}

/* Small ones become full, and there a few connections make a hog. */
const struct world_size world_sizes[WORLD_SIZES] = {{8, 16}, {16, 64}, {32, 256}};

const struct host_socket world_sockets[] = {
	{IPPROTO_TCP, v4_host, 20001, v4_server, 80, false},
	{IPPROTO_TCP, v4_host, 8080, v4_client, 33333, false},
	{IPPROTO_TCP, v4_host, 20002, NULL, 0, false},
	{IPPROTO_UDP, v4_host, 20001, v4_server, 80, false},
	{IPPROTO_UDP, v4_host, 8080, v4_client, 33333, false},
	{IPPROTO_UDP, v4_host, 20002, NULL, 0, false},
	{IPPROTO_TCP, v6_host, 20001, v6_server, 80, false},
	{IPPROTO_TCP, v6_host, 20002, NULL, 0, false},
	{IPPROTO_UDP, v6_host, 20001, v6_server, 80, false},
	{IPPROTO_UDP, v6_host, 20002, NULL, 0, false},
	{0, NULL, 0, NULL, 0, false},
};

static bool is_address(const uint8_t *address, const char *text)
{
	uint8_t other[16];

	world_address(other, text);
	return memcmp(address, other, 16) == 0;
}

enum world_socket_found world_socket(const struct tuple *tuple)
{
	enum world_socket_found found = SOCKET_NONE;

	for (const struct host_socket *socket = world_sockets; socket->address; socket++) {
		if (socket->protocol != (int)tuple->protocol ||
		    socket->port != tuple->destination_port ||
		    !is_address(tuple->destination, socket->address))
			continue;
		if (!socket->peer)
			found = SOCKET_OF_ANYBODY;
		else if (socket->peer_port == tuple->source_port &&
			 is_address(tuple->source, socket->peer))
			return SOCKET_OF_PEER;
	}
	return found;
}

const struct endpoint *world_endpoint(const struct world *world, const uint8_t *address)
{
	for (int i = 0; i < WORLD_ENDPOINTS; i++)
		if (world->endpoints[i].present &&
		    memcmp(world->endpoints[i].key.address, address, 16) == 0)
			return &world->endpoints[i].value;
	return NULL;
}

const struct interface *world_interface(const struct world *world, uint32_t ifindex)
{
	for (int i = 0; i < WORLD_INTERFACES; i++)
		if (world->interfaces[i].present && world->interfaces[i].ifindex == ifindex)
			return &world->interfaces[i].value;
	return NULL;
}

const struct portmap *world_mapping_at(const struct world *world, uint8_t protocol,
				       const uint8_t *address, uint16_t port)
{
	for (int i = 0; i < world->portmap_count; i++) {
		const struct portmap_key *key = &world->portmaps[i].key;

		if (key->protocol == protocol && key->host_port == port &&
		    memcmp(key->host_address, address, 16) == 0 &&
		    world_owner_live(world, &world->portmaps[i].value.owner))
			return &world->portmaps[i].value;
	}
	return NULL;
}

void world_any_address(uint8_t *any, const uint8_t *address)
{
	static const uint8_t any4[16] = {[10] = 0xff, [11] = 0xff}, any6[16];

	memcpy(any, address_is_ipv4(address) ? any4 : any6, 16);
}

const struct portmap *world_mapping(const struct world *world, uint8_t protocol,
				    const uint8_t *address, uint16_t port)
{
	const struct portmap *mapping;
	uint8_t any[16];

	if (!wire_has_ports(protocol))
		return NULL;
	mapping = world_mapping_at(world, protocol, address, port);
	if (mapping && !world->veth_gone[mapping->owner.slot])
		return mapping;
	world_any_address(any, address);
	mapping = world_mapping_at(world, protocol, any, port);
	return mapping && !world->veth_gone[mapping->owner.slot] ? mapping : NULL;
}

const struct policy *world_policy(const struct world *world, const struct owner *owner)
{
	const struct policy *policy = &world->policies[owner->slot];

	return owner->slot < WORLD_SLOTS && world->slots[owner->slot].has_policy &&
			       world->has_policy[owner->slot] &&
			       policy->owner.generation == owner->generation
		       ? policy
		       : NULL;
}

bool world_in_ranges(const struct address_range *ranges, int count, const uint8_t *address)
{
	for (int i = 0; i < count; i++)
		if (address_is_ipv4(ranges[i].address) == address_is_ipv4(address) &&
		    world_same_subnet(ranges[i].address, address, ranges[i].prefix_length))
			return !ranges[i].exception;
	return false;
}

bool world_owner_live(const struct world *world, const struct owner *owner)
{
	const struct slot *slot = &world->slots[owner->slot];

	return owner->slot < WORLD_SLOTS && slot->live && slot->generation == owner->generation;
}
