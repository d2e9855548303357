/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * forwarding.h - what the host does with packets that are not its own.
 */
#pragma once

#include <stdbool.h>

/* Reads the sysctl "forwarding" of an interface; "all": net.ipv4.ip_forward or
 * net.ipv6.conf.all.forwarding. True where it cannot be read. IPv4 packets are forwarded if that of
 * the interface where they come in is 1. IPv6 is forwarded if that of "all" is 1; that of an
 * interface says only whether the host is a router there. */
bool forwarding_is_on(bool ipv4, const char *interface);

/* Returns whether there are IPsec policies for packets that leave or are forwarded (`ip xfrm
 * policy`); those of single sockets do not count. What cannot be asked is not there. */
bool forwarding_has_ipsec_policies(void);
