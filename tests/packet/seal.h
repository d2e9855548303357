/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* seal.h - what from_container gives a packet as its skb->hash, from the packet's bytes. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* network: the offset of the IP header. Returns 0 where there is none. */
uint32_t seal_of(uint64_t secret, const uint8_t *bytes, size_t length, size_t network);
