/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* port_wait.h - an ADD waits for the ports of a container that is about to go. */
#pragma once

#include "datapath/records/attachments.h"

/* For an ADD whose ports another container has: waits for the DEL of that one, where it is about to
 * go, without the lock. Returns whether nobody has them any more. */
bool claims_wait_for_ports(const struct objects *objects, const struct attachment_claims *claims);
