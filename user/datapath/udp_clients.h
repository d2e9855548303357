/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * udp_clients.h - UDP sockets of the host's processes that are connected to a mapped port.
 *
 * They are connected to the container (bpf/socket.bpf.c), and no hook is called when they
 * send. So that they don't stick to one that is gone, they are connected again, in the name
 * of their program, when their port changes hands.
 */
#ifndef DATAPATH_UDP_CLIENTS_H
#define DATAPATH_UDP_CLIENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "datapath/datapath.h"

/* Host ports that change hands. Begins as {0}. */
struct udp_ports {
	bool any;
	uint64_t bits[PORT_WORDS];
};

void udp_ports_add(struct udp_ports *ports, const struct portmap_key *key);

/* Connects each whose peer is not the one that connect(2) would give it now. Warns of those
 * that cannot be helped. Looks for them only where a process of the host has ever connected a
 * UDP socket to one of these ports at one of the host's addresses, going by what the programs
 * have noticed. Takes milliseconds: not under the lock. */
void udp_clients_reconnect(const struct datapath *datapath, const struct udp_ports *ports);

#endif
