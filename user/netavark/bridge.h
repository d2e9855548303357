/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bridge.h - a network's interface on the host.
 */
#ifndef NETAVARK_BRIDGE_H
#define NETAVARK_BRIDGE_H

#include <stdbool.h>

/* Returns a name of a bridge for the network with this ID, the first one, or the one after
 * `others`: "podman" and digits of a digest, as rules of firewalls may be about podman*. malloc'ed.
 */
char *bridge_name_of(const char *id, unsigned int others);

bool bridge_exists(const char *name);

/* Returns whether an interface is connected to it, or whether that cannot be told. */
bool bridge_is_used(const char *name);

/* Waits until none is, for a fifth of a second at most: the kernel removes interfaces of a
 * namespace that is gone a moment later. */
void bridge_wait_unused(const char *name);

/* Removes an unused bridge, which the CNI plugin bridge never does. The caller holds the lock of
 * the network. Warns on stderr of what keeps it from doing so. */
void bridge_remove(const char *name);

#endif
