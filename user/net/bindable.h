/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bindable.h - whether a port of the host is free, by a try.
 */
#ifndef NET_BINDABLE_H
#define NET_BINDABLE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "abi.h"

/* True: no socket of the host listens there (TCP) or is bound there (UDP), at any address
 * of either family. False: one may. Binds a socket for a few microseconds, in which another
 * process that binds this port fails if it does without SO_REUSEADDR, or if it is UDP. */
bool port_is_bindable(enum protocol protocol, uint16_t port);

#endif
