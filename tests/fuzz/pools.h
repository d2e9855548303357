/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* pools.h - a few addresses and ports, so that random packets concern the same flows. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define POOL_CONTAINERS 5 /* the last one is a container that this plugin did not set up */

uint16_t pool_port(void);
void pool_container(uint8_t *address, int container, bool v4);
/* An address of the host. */
void pool_host(uint8_t *address, bool v4);
/* Another address: a client, a server, sometimes a container. */
void pool_outside(uint8_t *address, bool v4);
/* The number of the container with this address, or -1. */
int pool_container_of(const uint8_t *address);
uint32_t pool_device_of_container(int container);
