/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * port_cover.h - a few ranges that hold many ports.
 */
#ifndef NET_PORT_COVER_H
#define NET_PORT_COVER_H

#include <linux/types.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"

#define PORT_COVER_RANGES 16

/* Ranges that hold all of the ports, ascending, and of the others as few as so many ranges
 * allow. Returns how many ranges. Sorts the ports. */
size_t port_cover(uint16_t *ports, size_t count, struct port_range ranges[PORT_COVER_RANGES]);

#endif
