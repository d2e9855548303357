/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* reconcile.h - reconcile: compares with what Docker has; and what that is. */
#pragma once

#include <jansson.h>
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

/* docker.c: returns [{"Subnet", "IPRange", "Options", "network": its name, "addresses": {ADDRESS:
 * whose it is}}], one for each pool of each network of the IPAM driver; "gateway": the address that
 * is the network's own, as the user named it; "withoutGateway": true where it has none. A new
 * reference, or NULL and CNI_ERROR_IO or CNI_ERROR_DECODE. Waits for no answer longer than 20 s. */
json_t *docker_pools(const char *socket, const char *driver, struct cni_error *err);
