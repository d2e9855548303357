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

#include "datapath/objects.h"

/* Whether a process of the host has ever connected a UDP socket to this port of one of the
 * host's addresses, going by what the programs have noticed: to look for such sockets is
 * dear. */
bool udp_clients_are_known(const struct noticed *noticed, const struct portmap_key *key);

/* Connects each whose peer is not the one that connect(2) would give it now. Warns of those
 * that cannot be helped. Takes milliseconds: not under the lock. */
void udp_clients_reconnect(const struct objects *objects);

#endif
