/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * attachment_add.h - what an attachment owns in the maps: made as a whole, removed as a
 * whole, whenever a run is killed.
 *
 * The order of writes is the crash safety. ADD: generation, slot (not live), record
 * (the intent), policy, ports, endpoints, interface, live, record (ready). DEL: not live,
 * ports, endpoints, policy, interface, record, slot. Whatever is left of a killed run either
 * is found by its record, or is owned by nobody and free for the next one.
 *
 * Processes of the host whose connected UDP sockets are concerned are seen to as well
 * (udp_clients.h).
 */
#ifndef DATAPATH_RECORDS_ATTACHMENT_ADD_H
#define DATAPATH_RECORDS_ATTACHMENT_ADD_H

#include "datapath/records/claims.h"

struct nl_sock;

/* Claims everything, under the lock, in place of whatever this attachment had before. A
 * port whose owner is gone is taken over, with a warning. All or nothing; what it had
 * before is gone also after a failure. Codes 101 naming the owner, 7 (the veth is gone),
 * 11, 102. */
int attachment_add(const struct objects *objects, struct nl_sock *socket,
		   const struct attachment_claims *claims, struct cni_error *err);

#endif
