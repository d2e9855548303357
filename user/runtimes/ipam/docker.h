/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* docker.h - asks Docker's API which addresses its networks have. */
#pragma once

#include <jansson.h>

#include "lib/error.h"

/* Returns [{"Subnet", "IPRange", "Options", "network": its name, "addresses": {ADDRESS:
 * whose it is}}], one for each pool of each network of the IPAM driver; "gateway": the address that
 * is the network's own, as the user named it; "withoutGateway": true where it has none. A new
 * reference, or NULL and CNI_ERROR_IO or CNI_ERROR_DECODE. Waits for no answer longer than 20 s. */
json_t *docker_pools(const char *socket, const char *driver, struct cni_error *err);
