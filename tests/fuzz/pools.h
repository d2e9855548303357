/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* pools.h - few addresses and ports, so that random ones meet. */
#ifndef BPF_PORTMAP_TESTS_POOLS_H
#define BPF_PORTMAP_TESTS_POOLS_H

#include <stdbool.h>
#include <stdint.h>

#define POOL_CONTAINERS 5 /* the last one is a stranger on the bridge */

uint16_t pool_port(void);
void pool_container(uint8_t *address, int container, bool v4);
/* An address of the host's own. */
void pool_host(uint8_t *address, bool v4);
/* Somebody else: a client, a server, a stranger, now and then a container. */
void pool_outside(uint8_t *address, bool v4);
/* The number of the container with this address, or -1. */
int pool_container_of(const uint8_t *address);
uint32_t pool_device_of_container(int container);

#endif
