/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * format.h - addresses, times and numbers for people, each written into `text`, which is returned;
 * and what standard output is: its width, and whether it shows colours.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/address.h"
#include "operator/options.h"

#define ENDPOINT_TEXT_SIZE (CNI_ADDRESS_TEXT_SIZE + 8)
#define NUMBER_TEXT_SIZE 32
#define DURATION_TEXT_SIZE 16
#define TIME_TEXT_SIZE 32
#define MAC_TEXT_SIZE 18

/* "192.0.2.1:80", "[2001:db8::1]:80" */
const char *format_endpoint(const uint8_t address[CNI_ADDRESS_SIZE], uint16_t port,
			    char text[ENDPOINT_TEXT_SIZE]);
/* The same of a mapping, where any IPv4 address is "*:80". */
const char *format_host_port(const uint8_t address[CNI_ADDRESS_SIZE], uint16_t port,
			     char text[ENDPOINT_TEXT_SIZE]);
/* "48,113" */
const char *format_number(uint64_t number, char text[NUMBER_TEXT_SIZE]);
/* "42s", "5m", "2h", "3d": one unit, rounded down. */
const char *format_duration(uint64_t seconds, char text[DURATION_TEXT_SIZE]);
/* Seconds of CLOCK_REALTIME as "2026-11-22T04:01:07Z"; "" where that is no time. */
const char *format_time(uint64_t seconds, char text[TIME_TEXT_SIZE]);
/* "02:00:00:00:00:01", of six bytes */
const char *format_mac(const uint8_t *mac, char text[MAC_TEXT_SIZE]);

/* Returns the columns, which COLUMNS says first; 0: it is not a terminal, so that lines have no
 * limit. */
size_t terminal_width(void);
/* Returns whether to use colours. COLOR_AUTO: at a terminal, unless NO_COLOR is set (no-color.org)
 * or TERM is "dumb". */
bool terminal_has_color(enum color color);

#define REMEDY_WORD_SIZE 2560

struct remedy_word {
	char text[REMEDY_WORD_SIZE];
};

/* Returns the word quoted as one word of a shell: a container chooses its interfaces' names, and
 * root pastes the remedy. Use it within one expression: remedy_word(name).text. */
struct remedy_word remedy_word(const char *word);
