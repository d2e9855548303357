/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * given_addresses.h - which addresses a container was given: what the host's own records say. What
 * its namespace has proves nothing, as root in there may add any address.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "datapath/load/objects.h"
#include "lib/address.h"

/* Returns whether the container, by the digest that slots have, was given the address: on a network
 * of ours, by our maps, or on one of Podman's own, by what netavark keeps of its rules. False also
 * where that cannot be read. */
bool container_was_given(const struct objects *objects, uint64_t container,
			 const uint8_t address[CNI_ADDRESS_SIZE]);
