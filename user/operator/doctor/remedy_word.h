/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * remedy_word.h - words of remedies that a shell takes as they are. Without any I/O.
 */
#pragma once

#define REMEDY_WORD_SIZE 2560

struct remedy_word {
	char text[REMEDY_WORD_SIZE];
};

/* The word as one word of a shell: an interface in a container has any name that the container
 * likes, and root pastes the remedy. Use it within one expression: remedy_word(name).text. */
struct remedy_word remedy_word(const char *word);
