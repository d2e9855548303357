/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bridge_entry.h - a container's MAC in its bridge's forwarding database.
 *
 * The bridge learns it from frames that the container sends, and the fast path's never come to it:
 * after its ageing time it would send to all of its ports what is for that container. A static
 * entry does not age. It goes with the port.
 */
#pragma once

#include <stdint.h>

#include "net/link.h"

/* With a MAC of zeros, as of a veth that is no bridge's port, nothing is done. */

/* Makes it, in each VLAN of the port, or makes it static, whoever had it: only for the MAC that a
 * container had when it was added. 0, or -1 and errno. */
int bridge_entry_add(uint32_t port, const uint8_t mac[LINK_MAC_SIZE]);
/* The same for a MAC that a running container may have chosen, the bridge's own, for example: only
 * where there is no entry with it. */
int bridge_entry_add_new(uint32_t port, const uint8_t mac[LINK_MAC_SIZE]);
/* Returns whether a port of a bridge lacks its static entry. */
bool bridge_entry_is_missing(uint32_t port, const uint8_t mac[LINK_MAC_SIZE]);
/* Deletes it. An entry that does not exist, or is another port's by now, is no error. */
void bridge_entry_delete(uint32_t port, const uint8_t mac[LINK_MAC_SIZE]);
