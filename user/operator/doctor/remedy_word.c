/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* remedy_word.c - words of remedies that a shell takes as they are. */
#include "operator/doctor/remedy_word.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool is_plain(const char *word)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789._@+:/-";

	return *word && !word[strspn(word, plain)];
}

struct remedy_word remedy_word(const char *word)
{
	struct remedy_word quoted = {"''"};
	char *to = quoted.text;

	if (strlen(word) * 4 + sizeof("''") > sizeof(quoted.text))
		return quoted;
	if (is_plain(word)) {
		snprintf(to, sizeof(quoted.text), "%s", word);
		return quoted;
	}
	*to++ = '\'';
	for (; *word; word++) {
		/* A line's end would end a comment, and what follows would be a command. */
		if ((unsigned char)*word < ' ' || *word == 0x7f) {
			*to++ = '?';
		} else if (*word == '\'') {
			memcpy(to, "'\\''", 4);
			to += 4;
		} else {
			*to++ = *word;
		}
	}
	memcpy(to, "'", sizeof("'"));
	return quoted;
}
