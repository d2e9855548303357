/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bridge.h - a network's interface on the host.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Returns a name of a bridge for the network with this ID, the first one, or the one after
 * `others`: "podman" and digits of a digest, as rules of firewalls may be about podman*. malloc'ed.
 */
char *bridge_name_of(const char *id, unsigned int others);

bool bridge_exists(const char *name);

/* Returns how many interfaces are connected to it; SIZE_MAX where that cannot be told. */
size_t bridge_count_ports(const char *name);

/* Waits until no more than these are, for two seconds at most: the kernel removes interfaces of a
 * namespace that is gone a moment later, and on a busy machine much later. */
void bridge_wait_for_ports(const char *name, size_t ports);

/* Removes an unused bridge, which the CNI plugin bridge never does. The caller holds the lock of
 * the network. Warns on stderr of what keeps it from doing so. */
void bridge_remove(const char *name);

/* Removes the rules that keep isolated networks from each other: the CNI plugin firewall makes two
 * for each bridge and family, and never removes them, so that a later network with a bridge of that
 * name would have them. Call it when no container uses the bridge any more. Rules that are not
 * there are no error. */
void bridge_remove_rules(const char *bridge);
