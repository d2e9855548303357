/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* pools.c - random addresses of tests/packet/host.h. */
#include "pools.h"

#include <string.h>

#include "../packet/host.h"
#include "random.h"
#include "world.h"

#define POOL(name, ...) \
	static const char *const name##_text[] = {__VA_ARGS__}; \
	static uint8_t name[sizeof(name##_text) / sizeof(name##_text[0])][16]

POOL(containers, v4_container_one, v6_container_one, v4_container_two, v6_container_two,
     v4_container_quiet, v6_container_quiet, v4_container_routed, v6_container_routed, v4_stranger,
     v6_stranger);
POOL(host4, v4_host, v4_host, v4_host_other, v4_second_uplink, v4_bridge, "10.20.0.1");
POOL(host6, v6_host, v6_host, v6_second_uplink, v6_bridge, "fd00:20::1");
POOL(outside4, v4_client, v4_client, v4_client_other, v4_server, v4_server, v4_server_second,
     v4_server_vpn, v4_elsewhere, v4_stranger, v4_container_two);
POOL(outside6, v6_client, v6_client, v6_server, v6_server, v6_server_second, v6_elsewhere,
     v6_stranger, v6_container_two);

static void parse(uint8_t (*addresses)[16], const char *const *texts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		world_address(addresses[i], texts[i]);
}

#define PARSE(name) parse(name, name##_text, sizeof(name##_text) / sizeof(name##_text[0]))

__attribute__((constructor)) static void parse_pools(void)
{
	PARSE(containers);
	PARSE(host4);
	PARSE(host6);
	PARSE(outside4);
	PARSE(outside6);
}

uint16_t pool_port(void)
{
	static const uint16_t ports[] = {80,    80,    8080,  8080,  53,    9090,  1024, 20000,
					 20001, 20002, 20003, 29999, 33333, 65535, 1,    0};

	return RANDOM_OF(ports);
}

void pool_container(uint8_t *address, int container, bool v4)
{
	memcpy(address, containers[container % POOL_CONTAINERS * 2 + !v4], 16);
}

void pool_host(uint8_t *address, bool v4)
{
	memcpy(address, v4 ? RANDOM_OF(host4) : RANDOM_OF(host6), 16);
}

void pool_outside(uint8_t *address, bool v4)
{
	memcpy(address, v4 ? RANDOM_OF(outside4) : RANDOM_OF(outside6), 16);
}

int pool_container_of(const uint8_t *address)
{
	for (int i = 0; i < POOL_CONTAINERS * 2; i++)
		if (memcmp(containers[i], address, 16) == 0)
			return i / 2;
	return -1;
}

uint32_t pool_device_of_container(int container)
{
	static const uint32_t devices[] = {VETH_ONE, VETH_TWO, VETH_QUIET, VETH_ROUTED, BRIDGE};

	return devices[container];
}
