/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * nft_attribute.h - attributes of netlink messages, read without trusting any length in them.
 */
#ifndef NET_NFT_ATTRIBUTE_H
#define NET_NFT_ATTRIBUTE_H

#include <arpa/inet.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct nft_bytes {
	const uint8_t *data;
	size_t size;
};

struct nft_attribute {
	unsigned int type;
	struct nft_bytes value;
};

/* Takes the first attribute off the front. False: there is no whole one left. */
static inline bool nft_next(struct nft_bytes *rest, struct nft_attribute *attribute)
{
	uint16_t header[2];
	size_t step;

	if (rest->size < sizeof(header))
		return false;
	memcpy(header, rest->data, sizeof(header));
	if (header[0] < sizeof(header) || header[0] > rest->size)
		return false;
	attribute->type = header[1] & 0x3fff; /* without the flags */
	attribute->value.data = rest->data + sizeof(header);
	attribute->value.size = header[0] - sizeof(header);
	step = (header[0] + 3U) & ~3U;
	if (step > rest->size)
		step = rest->size;
	rest->data += step;
	rest->size -= step;
	return true;
}

/* The last one of this type, as the kernel has it; without bytes if there is none. */
static inline struct nft_bytes nft_find(struct nft_bytes rest, unsigned int type)
{
	struct nft_attribute attribute;
	struct nft_bytes found = {0};

	while (nft_next(&rest, &attribute))
		if (attribute.type == type)
			found = attribute.value;
	return found;
}

/* Big endian, as all numbers of nf_tables; `missing` where it is not there. */
static inline uint32_t nft_number(struct nft_bytes rest, unsigned int type, uint32_t missing)
{
	struct nft_bytes found = nft_find(rest, type);
	uint32_t number;

	if (found.size < sizeof(number))
		return missing;
	memcpy(&number, found.data, sizeof(number));
	return ntohl(number);
}

static inline bool nft_is(struct nft_bytes bytes, const char *text)
{
	size_t length = bytes.size ? strnlen((const char *)bytes.data, bytes.size) : 0;

	return length && length == strlen(text) && !memcmp(bytes.data, text, length);
}

#endif
