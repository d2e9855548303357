/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* text.c - formats text, and makes text from untrusted sources safe for a terminal or for JSON. */
#include "lib/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/memory.h"

char *cni_format_list(const char *format, va_list arguments)
{
	char *text;

	return or_exit(vasprintf(&text, format, arguments) < 0 ? NULL : text);
}

char *cni_format(const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	text = cni_format_list(format, arguments);
	va_end(arguments);
	return text;
}

bool text_ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), wanted = strlen(end);

	return length >= wanted && !strcmp(text + length - wanted, end);
}

/* Returns the length of the UTF-8 character at `text`, or 0 if there is none. */
static size_t decode_utf8(const char *text, uint32_t *character)
{
	static const unsigned char first_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	unsigned char first = (unsigned char)*text;
	/* 0: no character begins with this byte. */
	size_t length = first < 0x80                   ? 1
			: first < 0xc2 || first > 0xf4 ? 0
			: first < 0xe0                 ? 2
			: first < 0xf0                 ? 3
						       : 4;

	*character = first & first_bits[length];
	for (size_t i = 1; i < length; i++) {
		/* This ends the loop at the terminating NUL, too. */
		if (((unsigned char)text[i] & 0xc0) != 0x80)
			return 0;
		*character = *character << 6 | ((unsigned char)text[i] & 0x3f);
	}
	if (!length || *character < smallest[length] || *character > 0x10ffff ||
	    (*character >= 0xd800 && *character < 0xe000))
		return 0;
	return length;
}

/* Control characters of both kinds (C0 with DEL, C1), line separators, and the marks of Unicode's
 * bidirectional algorithm, which display a text in another order than it is stored. */
static bool is_obeyed(uint32_t character)
{
	return character < 0x20 || (character >= 0x7f && character < 0xa0) || character == 0x061c ||
	       character == 0x200e || character == 0x200f ||
	       (character >= 0x2028 && character <= 0x202e) ||
	       (character >= 0x2066 && character <= 0x2069);
}

/* `kept`: the control characters that stay; NULL: all. */
static void replace_bytes(char *text, const char *kept)
{
	while (*text) {
		uint32_t character = 0;
		size_t length = decode_utf8(text, &character);
		bool is_kept = !kept || (length == 1 && strchr(kept, *text));

		if (!length)
			*text = '?';
		else if (!is_kept && is_obeyed(character))
			memset(text, '?', length);
		text += length ? length : 1;
	}
}

void cni_printable(char *text, const char *kept)
{
	replace_bytes(text, kept);
}

void cni_make_utf8(char *text)
{
	replace_bytes(text, NULL);
}

const char *engine_id_digits(const char *container_id)
{
	const char *hyphen = strrchr(container_id, '-');
	const char *digits = hyphen ? hyphen + 1 : container_id;

	return strlen(digits) == ENGINE_ID_DIGITS &&
			       strspn(digits, "0123456789abcdef") == ENGINE_ID_DIGITS
		       ? digits
		       : NULL;
}

bool version_is_older(const char *a, const char *b)
{
	for (int part = 0; part < 3; part++) {
		char *a_end, *b_end;
		unsigned long a_number = strtoul(a, &a_end, 10);
		unsigned long b_number = strtoul(b, &b_end, 10);

		if (a_number != b_number)
			return a_number < b_number;
		a = *a_end == '.' ? a_end + 1 : a_end;
		b = *b_end == '.' ? b_end + 1 : b_end;
	}
	if (*a == '~' && *b == '~')
		return strcmp(a, b) < 0;
	return *a == '~';
}
