/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * isolation.h - rules that keep isolated networks from each other. The CNI plugin firewall makes
 * them, two for each bridge and family, and removes them never.
 */
#ifndef NETAVARK_ISOLATION_H
#define NETAVARK_ISOLATION_H

/* Removes those of a bridge that no container uses any more: a network of that name that comes
 * later would have them. Rules that are not there are none to remove, and no error. */
void isolation_remove(const char *bridge);

#endif
