/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * printable.c - text from strangers, before a terminal gets it.
 */
#include "cni/printable.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* How many bytes the character takes by its first one; 0: no character begins so. */
static size_t announced_length(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first >= 0xc2 && first < 0xe0)
		return 2;
	if (first >= 0xe0 && first < 0xf0)
		return 3;
	if (first >= 0xf0 && first < 0xf5)
		return 4;
	return 0;
}

/* Returns the length of the character at `text`, 0 where there is none in UTF-8. */
static size_t decode(const char *text, uint32_t *character)
{
	static const unsigned char first_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t length = announced_length((unsigned char)*text);

	*character = (unsigned char)*text & first_bits[length];
	for (size_t i = 1; i < length; i++) {
		/* The NUL at the end is no continuation either. */
		if (((unsigned char)text[i] & 0xc0) != 0x80)
			return 0;
		*character = *character << 6 | ((unsigned char)text[i] & 0x3f);
	}
	if (!length || *character < smallest[length] || *character > 0x10ffff ||
	    (*character >= 0xd800 && *character < 0xe000))
		return 0;
	return length;
}

/* Control characters of both kinds (C0 with DEL, C1), line separators, and the marks of
 * Unicode's bidirectional algorithm, which show a text in another order than it has. */
static bool is_obeyed(uint32_t character)
{
	return character < 0x20 || (character >= 0x7f && character < 0xa0) || character == 0x061c ||
	       character == 0x200e || character == 0x200f ||
	       (character >= 0x2028 && character <= 0x202e) ||
	       (character >= 0x2066 && character <= 0x2069);
}

void cni_printable(char *text, const char *kept)
{
	while (*text) {
		uint32_t character = 0;
		size_t length = decode(text, &character);
		bool is_kept = length == 1 && strchr(kept, *text);

		if (!length)
			*text = '?';
		else if (!is_kept && is_obeyed(character))
			memset(text, '?', length);
		text += length ? length : 1;
	}
}
