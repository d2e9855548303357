/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* published_ports.h - which ports are worth a look-up for packets and sockets. */
#pragma once

#include "datapath/load/objects.h"
#include "lib/error.h"

/* Takes the ports off the map that no mapping has any more, nor the host's own NAT. Call it with
 * the lock: who adds an entry sets its bit first. CNI_ERROR_KERNEL_REFUSED. */
int published_ports_forget(const struct objects *objects, struct cni_error *err);
