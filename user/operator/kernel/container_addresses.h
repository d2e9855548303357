/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * container_addresses.h - the addresses of containers: those in the network namespaces that
 * interfaces of this one lead to. The kernel is asked by the numbers that it gives these
 * namespaces, so neither their files nor their processes need be visible.
 */
#pragma once

#include <stdbool.h>

#include "lib/address.h"
#include "lib/error.h"

struct container_address {
	int namespace; /* the kernel's number of it */
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

/* Returns how many namespaces have the address. */
size_t container_addresses_count(const struct container_addresses *addresses,
				 const uint8_t address[CNI_ADDRESS_SIZE]);
