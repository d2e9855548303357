/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * apart.h - a process of its own for what may never end.
 */
#ifndef NET_APART_H
#define NET_APART_H

#include <stdbool.h>

/* Calls work(context) in another process, and passes on what that writes to standard error.
 * False: there could be none, or it has not ended after so many milliseconds; then it is
 * left to itself, and keeps nobody from waiting for the end of our output. */
bool run_apart(void (*work)(void *context), void *context, int milliseconds);

#endif
