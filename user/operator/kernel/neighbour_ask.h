/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * neighbour_ask.h - asks at an interface who has an address, by ARP or Neighbour Discovery, and
 * reads who answers. The kernel asks for its own use alone, and not where it believes to know.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/address.h"
#include "net/link.h"

/* Who is in the network answers within that. */
#define NEIGHBOUR_ANSWER_MS 100

/* Asks all who are there. The sender of an ARP question has no address, so that nobody learns
 * anything from it. Returns a file to read answers from, which is to be closed, or -1. */
int neighbour_ask(const struct link *link, const uint8_t address[CNI_ADDRESS_SIZE]);

/* Waits, at most so long, for the next answer, and writes the MAC of whoever sent it. False: none
 * has come. */
bool neighbour_answer(int question, const uint8_t address[CNI_ADDRESS_SIZE], int milliseconds,
		      uint8_t mac[LINK_MAC_SIZE]);
