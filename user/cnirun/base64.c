/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * base64.c - bytes to base64 and back.
 */
#include "cnirun/base64.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cni/cleanup.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void encode_group(const uint8_t *bytes, size_t count, char *text)
{
	uint32_t group = (uint32_t)bytes[0] << 16;

	if (count > 1)
		group |= (uint32_t)bytes[1] << 8;
	if (count > 2)
		group |= bytes[2];
	text[0] = alphabet[group >> 18];
	text[1] = alphabet[group >> 12 & 63];
	text[2] = count > 1 ? alphabet[group >> 6 & 63] : '=';
	text[3] = count > 2 ? alphabet[group & 63] : '=';
}

char *base64_encode(const void *data, size_t length)
{
	const uint8_t *bytes = data;
	char *text = malloc((length + 2) / 3 * 4 + 1);
	char *end = text;

	if (!text)
		return NULL;
	for (size_t i = 0; i < length; i += 3, end += 4)
		encode_group(bytes + i, length - i, end);
	*end = '\0';
	return text;
}

/* 0-63, or -1. */
static int digit_value(char digit)
{
	const char *position = digit ? strchr(alphabet, digit) : NULL;

	return position ? (int)(position - alphabet) : -1;
}

/* Returns how many bytes the four digits are: 1-3, or -1. */
static int decode_group(const char *text, char bytes[3])
{
	int padding = text[3] != '=' ? 0 : text[2] != '=' ? 1 : 2;
	uint32_t group = 0;

	for (int i = 0; i < 4; i++) {
		int value = i < 4 - padding ? digit_value(text[i]) : 0;

		if (value < 0)
			return -1;
		group = group << 6 | (uint32_t)value;
	}
	bytes[0] = (char)(group >> 16);
	bytes[1] = (char)(group >> 8);
	bytes[2] = (char)group;
	return 3 - padding;
}

char *base64_decode(const char *text, size_t *length)
{
	size_t digits = strlen(text);
	cleanup_free char *bytes = malloc(digits / 4 * 3 + 1);

	*length = 0;
	if (!bytes || digits % 4)
		return NULL;
	for (size_t i = 0; i < digits; i += 4) {
		int count = decode_group(text + i, bytes + *length);

		if (count < 0 || (count < 3 && i + 4 < digits))
			return NULL;
		*length += (size_t)count;
	}
	bytes[*length] = '\0';
	return TAKE(bytes);
}
