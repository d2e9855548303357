/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bpf_error.h - what it means when the kernel refuses something about BPF. */
#pragma once

#include "lib/error.h"

/* Sets CNI_ERROR_KERNEL_REFUSED: what was tried, the errno in words, and why this host refuses
 * (lockdown, user namespace, capabilities, no BPF). Returns -1. */
int bpf_error_set(struct cni_error *err, int errno_value, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Returns what keeps root of this host from loading programs, in a sentence; NULL: nothing. */
const char *bpf_error_obstacle(void);

/* What libbpf's warnings say of a load that the kernel refused. */
struct load_log_reason {
	char program[32];   /* "": they name none */
	char verifier[256]; /* the line with which the verifier gave up, or "" */
};

void load_log_read(const char *log, struct load_log_reason *reason);
