/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * leave.h - what is to be done when a container has left a network.
 */
#ifndef NETAVARK_LEAVE_H
#define NETAVARK_LEAVE_H

#include "cnirun/cache.h"
#include "cnirun/conflist.h"
#include "netavark/request.h"

/* Detaches containers of the network whose namespace has gone without a teardown; removes the
 * bridge with the last container. `list` is what the container was detached by. Does nothing, and
 * gives the lock up, where another call is at work in the network, which may need the bridge. */
void leave(int lock, const struct request *request, const struct conflist *list);

#endif
