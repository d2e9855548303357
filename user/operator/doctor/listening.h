/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * listening.h - whether a socket takes what comes to a container's port. Without any I/O.
 */
#pragma once

#include "net/sockets.h"

enum listening {
	LISTENING,
	LISTENING_AT_LOOPBACK, /* only */
	LISTENING_ELSEWHERE,   /* only at another address, or the other family */
	LISTENING_NOT,
};

/* *where becomes the address of the socket that listens, or of the one that is at fault; NULL:
 * there is neither. */
enum listening listening_at(const struct socket_list *sockets, enum protocol protocol,
			    const uint8_t address[CNI_ADDRESS_SIZE], uint16_t port,
			    const uint8_t **where);
