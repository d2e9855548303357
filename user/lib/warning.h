/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * warning.h - non-fatal problems, a line each on stderr and in the system's log: Podman and kubelet
 * hide what a plugin prints when it succeeds.
 */
#pragma once

/* Prints and logs one line, prefixed with the plugin's name; no newline needed. A log daemon that
 * does not read is not waited for. */
void warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
