/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* reconcile.h - reconcile: compares with what Docker has. */
#pragma once

#include <time.h>

#include "lib/error.h"
#include "runtimes/ipam/settings.h"

/* Prints a line for each difference, and puts it right unless it is younger than --grace or a dry
 * run. Goes on after an error. */
int reconcile(const struct settings *settings, struct cni_error *err);

/* Gives back what Docker has lost and got before that time, and does nothing else: Docker may be at
 * work meanwhile, and what it has just given back is not to be asked for again. Asks Docker up to
 * `rounds` times, with a second between them, until it answers. Prints what it gives back. */
int reconcile_lost(const struct settings *settings, time_t before, unsigned int rounds,
		   struct cni_error *err);
