/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * redirect.h - filters that send packets to another interface.
 */
#ifndef NET_REDIRECT_H
#define NET_REDIRECT_H

#include <stdint.h>

struct nl_sock;

/* The interface to which the first u32 filter at ingress with a lower priority number than this one
 * redirects packets (action mirred), as the bandwidth plugin's does; 0: there is none. */
uint32_t redirect_at_ingress(struct nl_sock *socket, uint32_t ifindex, uint32_t priority);

#endif
