/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * explain.h - what the codes of findings mean, the words at the beginning of doctor's lines.
 */
#pragma once

#include <stdbool.h>

/* Prints it. Returns false where there is no such code. */
bool explain_print(const char *code);
