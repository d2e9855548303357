/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* format.c - addresses, times and numbers for people, and words for a shell. */
#include "operator/print/format.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define IPV4_OFFSET 12

/* Without snprintf(), of which a table of 500,000 flows would need millions. */
static char *append_number(char *end, unsigned int number)
{
	char digits[10];
	size_t count = 0;

	do
		digits[count++] = (char)('0' + number % 10);
	while (number /= 10);
	while (count)
		*end++ = digits[--count];
	return end;
}

static char *append_ipv4(char *end, const uint8_t address[CNI_ADDRESS_SIZE])
{
	for (int i = IPV4_OFFSET; i < CNI_ADDRESS_SIZE; i++) {
		end = append_number(end, address[i]);
		if (i + 1 < CNI_ADDRESS_SIZE)
			*end++ = '.';
	}
	return end;
}

const char *format_endpoint(const uint8_t address[CNI_ADDRESS_SIZE], uint16_t port,
			    char text[ENDPOINT_TEXT_SIZE])
{
	char *end = text;

	if (cni_address_is_ipv4(address)) {
		end = append_ipv4(end, address);
	} else {
		*end++ = '[';
		cni_address_format(address, end);
		end += strlen(end);
		*end++ = ']';
	}
	*end++ = ':';
	*append_number(end, port) = '\0';
	return text;
}

const char *format_host_port(const uint8_t address[CNI_ADDRESS_SIZE], uint16_t port,
			     char text[ENDPOINT_TEXT_SIZE])
{
	if (memcmp(address, cni_address_any_ipv4, CNI_ADDRESS_SIZE) != 0)
		return format_endpoint(address, port, text);
	snprintf(text, ENDPOINT_TEXT_SIZE, "*:%u", port);
	return text;
}

const char *format_number(uint64_t number, char text[NUMBER_TEXT_SIZE])
{
	char digits[NUMBER_TEXT_SIZE];
	int count = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)number);
	char *end = text;

	for (int i = 0; i < count; i++) {
		if (i && (count - i) % 3 == 0)
			*end++ = ',';
		*end++ = digits[i];
	}
	*end = '\0';
	return text;
}

const char *format_duration(uint64_t seconds, char text[DURATION_TEXT_SIZE])
{
	static const struct {
		uint64_t seconds;
		char unit;
	} units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
	size_t i = 0;
	char *end;

	while (i < 3 && seconds < units[i].seconds)
		i++;
	/* More days than an unsigned int holds are a damaged record's. */
	seconds /= units[i].seconds;
	if (seconds > 999999)
		seconds = 999999;
	end = append_number(text, (unsigned int)seconds);
	*end++ = units[i].unit;
	*end = '\0';
	return text;
}

const char *format_time(uint64_t seconds, char text[TIME_TEXT_SIZE])
{
	time_t time = (time_t)seconds;
	struct tm parts;

	if (!gmtime_r(&time, &parts) ||
	    !strftime(text, TIME_TEXT_SIZE, "%Y-%m-%dT%H:%M:%SZ", &parts))
		*text = '\0';
	return text;
}

const char *format_mac(const uint8_t *mac, char text[MAC_TEXT_SIZE])
{
	snprintf(text, MAC_TEXT_SIZE, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2],
		 mac[3], mac[4], mac[5]);
	return text;
}

/* --- standard output ------------------------------------------------------------------------ */

size_t terminal_width(void)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;

	if (columns && atoi(columns) > 0)
		return (size_t)atoi(columns);
	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
		return 0;
	return size.ws_col;
}

bool terminal_has_color(enum color color)
{
	const char *disabled = getenv("NO_COLOR"), *terminal = getenv("TERM");

	if (color == COLOR_ALWAYS || color == COLOR_NEVER)
		return color == COLOR_ALWAYS;
	return isatty(STDOUT_FILENO) && !(disabled && *disabled) && terminal &&
	       strcmp(terminal, "dumb") != 0;
}

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
