/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * quiet.h - keeps connections from harm while the ports of containers are closed for a moment.
 *
 * A packet to a mapped port, or back to a masqueraded connection, that no program translates comes
 * to the host itself, which knows no such connection and resets it. And what a container sends in a
 * connection that the older version has not got yet would begin another one, with another port. A
 * table of nftables of our own drops the host's RSTs and its errors about ports, and what is
 * forwarded from containers: the peers send it again.
 */
#ifndef OPERATOR_DOWNGRADE_QUIET_H
#define OPERATOR_DOWNGRADE_QUIET_H

#include <jansson.h>

#include "lib/error.h"

/* `adds` as plan_adds() makes it. Without nftables it is a warning: busy connections may end. */
void quiet_begin(const json_t *adds);

/* CNI_ERROR_IO where the table stays. */
int quiet_end(struct cni_error *err);

#endif
