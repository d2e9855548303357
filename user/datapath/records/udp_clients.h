/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * udp_clients.h - UDP sockets of the host's processes that are connected to a mapped port.
 *
 * They are connected to the container (bpf/socket.bpf.c), and no hook is called when they
 * send. So that they do not go on sending to a container that is gone, the kernel ends them
 * when their port changes hands: their programs get ECONNABORTED, and may connect again.
 */
#pragma once

#include "conf/port_set.h"
#include "datapath/load/objects.h"

/* Adds the host port, which changes hands, if it is one of UDP. */
void udp_ports_add(struct port_set *ports, const struct portmap_key *key);

/* Ends each that was connected to a container by its port, and would be connected elsewhere now.
 * Warns of the ports where the kernel cannot. Looks for them only where a process of the host has
 * ever connected a UDP socket to one of these ports at one of the host's addresses, going by what
 * the programs have noticed. Takes up to milliseconds: not under the lock. */
void udp_clients_end(const struct objects *objects, const struct port_set *ports);
