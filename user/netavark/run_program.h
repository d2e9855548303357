/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* run_program.h - runs a program that is no CNI plugin. */
#pragma once

/* Runs it, found by PATH, and waits for its end. Neither its output is shown, nor does it, or what
 * it leaves running, inherit a file: our locks least of all. `arguments` ends with NULL. 0 if it
 * succeeds, else -1. */
int run_program(const char *const *arguments);
