/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * quiet.h - keeps this host from answering for containers whose ports are closed for a moment.
 *
 * A packet to a mapped port, or back to a masqueraded connection, that no program translates comes
 * to the host itself, which knows no such connection and resets it. In a table of nftables of our
 * own the host's RSTs and its errors about ports are dropped meanwhile: the peer sends again.
 */
#ifndef OPERATOR_DOWNGRADE_QUIET_H
#define OPERATOR_DOWNGRADE_QUIET_H

/* Without nftables it is a warning: connections that are busy may be reset. */
void quiet_begin(void);
void quiet_end(void);

#endif
