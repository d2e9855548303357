/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * container_addresses.h - the addresses of the network namespaces that interfaces of this one lead
 * to: those of containers. The kernel is asked by its numbers of them, so that neither their files
 * nor their processes need be seen.
 */
#pragma once

#include <stdbool.h>

#include "lib/address.h"
#include "lib/error.h"

struct container_address {
	int namespace; /* its number */
	uint8_t address[CNI_ADDRESS_SIZE];
};

/* Begins as {0}. */
struct container_addresses {
	struct container_address *list;
	size_t count;
	bool hidden; /* a namespace has no IPv4 address: a virtual machine in it may have one */
};

/* Release the list also after a failure. CNI_ERROR_IO: it is not complete. */
int container_addresses_read(struct container_addresses *addresses, struct cni_error *err);
void container_addresses_release(struct container_addresses *addresses);

/* In how many namespaces the address is. */
size_t container_addresses_count(const struct container_addresses *addresses,
				 const uint8_t address[CNI_ADDRESS_SIZE]);
