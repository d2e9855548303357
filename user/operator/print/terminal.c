/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* terminal.c - what standard output is. */
#include "operator/print/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

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
