/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * socket_address.h - addresses as sockets have them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "lib/address.h"

/* Writes it with a port. Returns the size. */
socklen_t socket_address_make(struct sockaddr_storage *made,
			      const uint8_t address[CNI_ADDRESS_SIZE], uint16_t port);

/* Reads the address. False: it is of neither IPv4 nor IPv6. */
bool socket_address_read(const struct sockaddr *from, uint8_t address[CNI_ADDRESS_SIZE]);
