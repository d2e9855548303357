/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * attachments.h - what an attachment owns in the maps: made as a whole, removed as a
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
#ifndef DATAPATH_RECORDS_ATTACHMENTS_H
#define DATAPATH_RECORDS_ATTACHMENTS_H

#include "datapath/records/claims.h"
#include "datapath/load/datapath.h"

/* "network/containerID/ifname". Code 4 if that is too long. */
int attachment_key_make(struct attachment_key *key, const char *network, const char *container_id,
			const char *ifname, struct cni_error *err);

/* The parts of "network/containerID/ifname". */
struct attachment_name {
	char text[ATTACHMENT_KEY_SIZE + 1]; /* where they lie */
	const char *network, *container_id, *ifname;
};

/* Of a key as it stands in a map. False: it is none. */
bool attachment_name_split(const char key[ATTACHMENT_KEY_SIZE], struct attachment_name *name);

bool attachments_are_of_one_container(const char one[ATTACHMENT_KEY_SIZE],
				      const char other[ATTACHMENT_KEY_SIZE]);

/* Claims everything, under the lock, in place of whatever this attachment had before. A
 * port whose owner is gone is taken over, with a warning. All or nothing; what it had
 * before is gone also after a failure. Codes 101 naming the owner, 7 (the veth is gone),
 * 11, 102. */
int attachment_add(const struct datapath *datapath, struct nl_sock *socket,
		   const struct attachment_claims *claims, struct cni_error *err);

/* Removes all it owns. One that is not there: 0, without the lock. `likely`: what it probably
 * owns, or NULL. Codes 11, 102. */
int attachment_remove(const struct datapath *datapath, const struct attachment_key *key,
		      const struct attachment_claims *likely, struct cni_error *err);

/* Compares what is in the maps with the claims; the ports only if `with_ports`, else that
 * there are as many as were claimed. Code 102 naming the first difference. */
int attachment_verify(const struct datapath *datapath, const struct attachment_claims *claims,
		      bool with_ports, struct cni_error *err);

struct attachment_entry {
	struct attachment_key key; /* as it stands in the map: a damaged one need not end */
	struct attachment attachment;
};

/* All attachments; *entries is malloc'ed. Code 102. */
int attachment_list(const struct datapath *datapath, struct attachment_entry **entries,
		    size_t *count, struct cni_error *err);

/* Removes all it owns, unless it was deleted or added again since it was listed. Codes 11,
 * 102. */
int attachment_remove_stale(const struct datapath *datapath, const struct attachment_entry *entry,
			    struct cni_error *err);

#endif
