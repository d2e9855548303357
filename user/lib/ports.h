/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ports.h - the words for protocols and ports: what people write, and what they read. */
#pragma once

#include <stdint.h>

#include "abi.h"

/* Returns "tcp", or the number of a protocol that has no word here. */
const char *protocol_word(uint8_t protocol);
/* Returns the protocol of a word; 0: there is no such word. */
enum protocol protocol_parse(const char *word);
/* The same behind a port, as in "53/udp"; 0 also: the protocol has no ports. */
enum protocol protocol_parse_of_port(const char *word);

/* The words of those that are mapped, in lower case, up to a NULL. */
extern const char *const mapped_protocols[];

/* Reads "80" or "80-90", of 1 to 65535, from the beginning of the text. Returns what follows, or
 * NULL where there is no such range; the last port may be below the first. */
const char *port_range_parse(const char *text, struct port_range *range);
