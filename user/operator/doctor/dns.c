/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* dns.c - a question for the addresses of a name, and the answer to it. */
#include "operator/doctor/dns.h"

#include <string.h>

#define HEADER_SIZE 12
#define LABEL_MOST 63
#define POINTER 0xc0 /* a name goes on elsewhere in the message: the last two bytes of it */

#define FLAG_REPLY 0x80
#define FLAG_RECURSION 0x01 /* in the same byte: the server shall ask others */
#define CODE_MASK 0x0f
#define CODE_NO_NAME 3

#define TYPE_A 1
#define TYPE_AAAA 28
#define CLASS_IN 1

static void put_number(uint8_t *to, unsigned int number)
{
	to[0] = (uint8_t)(number >> 8);
	to[1] = (uint8_t)number;
}

static unsigned int number_at(const uint8_t *from)
{
	return (unsigned int)from[0] << 8 | from[1];
}

size_t dns_write(uint8_t message[DNS_SIZE], uint16_t id, const char *name, bool ipv4)
{
	size_t at = HEADER_SIZE, length = strlen(name);

	if (!length || length > DNS_NAME_MOST)
		return 0;
	memset(message, 0, HEADER_SIZE);
	put_number(message, id);
	message[2] = FLAG_RECURSION;
	put_number(message + 4, 1); /* question */
	while (*name) {
		size_t label = strcspn(name, ".");

		if (!label || label > LABEL_MOST)
			return 0;
		message[at++] = (uint8_t)label;
		memcpy(message + at, name, label);
		at += label;
		name += label + (name[label] == '.');
	}
	message[at++] = 0;
	put_number(message + at, ipv4 ? TYPE_A : TYPE_AAAA);
	put_number(message + at + 2, CLASS_IN);
	return at + 4;
}

/* Returns where the name ends that begins there; `length`: behind the message. */
static size_t skip_name(const uint8_t *message, size_t length, size_t at)
{
	while (at < length && message[at] && message[at] < POINTER)
		at += 1U + message[at];
	if (at >= length)
		return length;
	at += message[at] ? 2 : 1;
	return at < length ? at : length;
}

enum dns_reply dns_read(const uint8_t *message, size_t length, uint16_t id, bool ipv4,
			uint8_t address[CNI_ADDRESS_SIZE])
{
	unsigned int type = ipv4 ? TYPE_A : TYPE_AAAA, size = ipv4 ? 4 : 16, data;
	size_t at = HEADER_SIZE;

	if (length < HEADER_SIZE || number_at(message) != id || !(message[2] & FLAG_REPLY))
		return DNS_NOTHING;
	if (message[3] & CODE_MASK)
		return (message[3] & CODE_MASK) == CODE_NO_NAME ? DNS_NO_ADDRESS : DNS_REFUSED;
	for (unsigned int i = number_at(message + 4); i && at < length; i--)
		at = skip_name(message, length, at) + 4;
	for (unsigned int i = number_at(message + 6); i && at < length; i--) {
		at = skip_name(message, length, at);
		if (at + 10 > length)
			break;
		data = number_at(message + at + 8);
		if (at + 10 + data > length)
			break;
		if (number_at(message + at) == type && number_at(message + at + 2) == CLASS_IN &&
		    data == size) {
			cni_address_make(address, message + at + 10, size);
			return DNS_ADDRESS;
		}
		at += 10 + data;
	}
	return DNS_NO_ADDRESS;
}
