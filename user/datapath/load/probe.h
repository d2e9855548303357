/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * probe.h - whether this host could run the programs, asked without loading any.
 */
#ifndef DATAPATH_LOAD_PROBE_H
#define DATAPATH_LOAD_PROBE_H

#include "lib/error.h"

/* Checks whether this process may use BPF. CNI_ERROR_KERNEL_REFUSED and why not. Look-ups that find
 * nothing mean nothing without it. */
int probe_permission(struct cni_error *err);

/* Checks whether it could run the programs. CNI_ERROR_NOT_AVAILABLE and why not: kernel too old, no
 * BPF, no permission, lockdown, user namespace. */
int probe_kernel(struct cni_error *err);

#endif
