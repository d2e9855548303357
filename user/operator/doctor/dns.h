/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dns.h - a question for the addresses of a name, and the answer to it (RFC 1035). Without any I/O.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/address.h"

#define DNS_SIZE 512 /* of a message over UDP without extensions */
#define DNS_NAME_MOST 253

enum dns_reply {
	DNS_NOTHING,    /* no reply to this question */
	DNS_ADDRESS,    /* an address of the name */
	DNS_NO_ADDRESS, /* there is no such name, or it has none of this family */
	DNS_REFUSED,    /* the server could not say */
};

/* Writes the question. Returns its length; 0: it is no name. */
size_t dns_write(uint8_t message[DNS_SIZE], uint16_t id, const char *name, bool ipv4);

/* Reads a message that may hold anything; of several addresses the first. */
enum dns_reply dns_read(const uint8_t *message, size_t length, uint16_t id, bool ipv4,
			uint8_t address[CNI_ADDRESS_SIZE]);
