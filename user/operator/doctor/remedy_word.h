/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * remedy_word.h - quotes the words of remedies for a shell. Without any I/O.
 */
#pragma once

#define REMEDY_WORD_SIZE 2560

struct remedy_word {
	char text[REMEDY_WORD_SIZE];
};

/* Returns the word quoted as one word of a shell: a container chooses its interfaces' names, and
 * root pastes the remedy. Use it within one expression: remedy_word(name).text. */
struct remedy_word remedy_word(const char *word);
