/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * reconcile.h - reconcile: compares with what Docker has.
 */
#ifndef IPAM_RECONCILE_H
#define IPAM_RECONCILE_H

#include "lib/error.h"
#include "ipam/settings.h"

/* Prints a line for each difference, and puts it right unless it is younger than --grace or a dry
 * run. Goes on after an error. */
int reconcile(const struct settings *settings, struct cni_error *err);

#endif
