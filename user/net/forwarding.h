/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * forwarding.h - whether the host is a router.
 */
#ifndef NET_FORWARDING_H
#define NET_FORWARDING_H

#include <stdbool.h>

/* Whether packets of the family that come in by the interface are forwarded, as its sysctl
 * says; "all": net.ipv4.ip_forward, net.ipv6.conf.all.forwarding. True where it does not say. */
bool forwarding_is_on(bool ipv4, const char *interface);

#endif
