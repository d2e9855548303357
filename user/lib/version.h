/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * version.h - which of two versions is older.
 */
#pragma once

#include <stdbool.h>

/* Compares up to three numbers; text that is no number counts as 0. As packages have it, "0.2~rc1"
 * is older than "0.2". */
bool version_is_older(const char *a, const char *b);
