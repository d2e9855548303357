/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * terminal.h - what standard output is: its width, and whether it shows colours.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "operator/options.h"

/* Returns the columns, which COLUMNS says first; 0: it is not a terminal, so that lines have no
 * limit. */
size_t terminal_width(void);
/* Returns whether to use colours. COLOR_AUTO: at a terminal, unless NO_COLOR is set (no-color.org)
 * or TERM is "dumb". */
bool terminal_has_color(enum color color);
