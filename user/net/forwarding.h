/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * forwarding.h - what the host does with packets that are not its own.
 */
#ifndef NET_FORWARDING_H
#define NET_FORWARDING_H

#include <stdbool.h>

/* Returns whether packets of the family that come in by the interface are forwarded, as its sysctl
 * says; "all": net.ipv4.ip_forward, net.ipv6.conf.all.forwarding. True where it does not say. */
bool forwarding_is_on(bool ipv4, const char *interface);

/* Returns whether there are IPsec policies for packets that leave or are forwarded (`ip xfrm
 * policy`); those of single sockets do not count. What cannot be asked is not there. */
bool forwarding_has_ipsec_policies(void);

#endif
