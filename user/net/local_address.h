/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * local_address.h - whether an address is one of this host's.
 */
#ifndef NET_LOCAL_ADDRESS_H
#define NET_LOCAL_ADDRESS_H

#include <stdbool.h>

#include "lib/address.h"

struct nl_sock;

/* As routing sees it: of an interface, or of a local route ("ip route add local"). False
 * also where rtnetlink can't say. */
bool local_address_exists(struct nl_sock *socket, const uint8_t address[CNI_ADDRESS_SIZE]);

#endif
