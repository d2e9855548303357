/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * load_log.h - what libbpf's warnings say of a load that the kernel refused.
 */
#pragma once

struct load_log_reason {
	char program[32];   /* "": they name none */
	char verifier[256]; /* the line with which the verifier gave up, or "" */
};

void load_log_read(const char *log, struct load_log_reason *reason);
