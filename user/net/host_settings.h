/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * host_settings.h - what settings of the host say: the ports that masqueraded flows may leave with,
 * and what is done with packets that are not the host's own.
 *
 * The ports are apart from the host's own ephemeral ones: a socket of the host that later picks a
 * port we hold would lose its replies, and whoever else masquerades with the host's address shares
 * it unseen.
 */
#pragma once

#include <linux/types.h>
#include <stdbool.h>

#include "abi.h"

/* Chooses 1024-65535 without the host's ephemeral range and without the reserved ports, given as in
 * /proc ("8080,9000-9100"; what does not parse is skipped). Where there are more ranges than fit,
 * the largest; ascending, unused ones {0, 0}. False if hardly a port was left, because the
 * ephemeral range is set to almost everything: the ranges then share it. */
bool port_ranges_choose(struct port_range ephemeral, const char *reserved,
			struct port_range ranges[MASQUERADE_RANGES]);

/* Fills meta->masquerade_ports with those that the settings of this namespace leave now. False:
 * they are the same as before. Warns where they have changed and the host leaves hardly one. A flow
 * that lives keeps its port. A program that finds a range half new may at worst try a port of the
 * host's own range; it asks for a socket there, as at every port. */
bool port_ranges_follow(struct meta *meta);

/* Reads the sysctl "forwarding" of an interface; "all": net.ipv4.ip_forward or
 * net.ipv6.conf.all.forwarding. True where it cannot be read. IPv4 packets are forwarded if that of
 * the interface where they come in is 1. IPv6 is forwarded if that of "all" is 1; that of an
 * interface says only whether the host is a router there. */
bool forwarding_is_on(bool ipv4, const char *interface);

/* Returns whether there are IPsec policies for packets that leave or are forwarded (`ip xfrm
 * policy`); those of single sockets do not count. What cannot be asked is not there. */
bool forwarding_has_ipsec_policies(void);
