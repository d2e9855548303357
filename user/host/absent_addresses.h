/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * absent_addresses.h - addresses in the configuration that the host does not have now.
 */
#ifndef HOST_ABSENT_ADDRESSES_H
#define HOST_ABSENT_ADDRESSES_H

#include "host/container.h"
#include "host/host.h"

/* Warns of those in snatAddresses and hostIP. They may come later, so it is no error; but until
 * then nothing comes back to the one, and nothing reaches the other. */
void absent_addresses_warn(const struct host *host, const struct container *container);

#endif
