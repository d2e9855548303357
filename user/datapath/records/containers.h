/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * containers.h - a container that is on several networks: its addresses on all of them, and ports
 * that more than one of its attachments has asked for. Call all of it with the lock.
 */
#pragma once

#include "datapath/records/claims.h"

/* Adds the attachment's addresses to those of its container; those beyond MAX_HOMES are left out,
 * but of each of MAX_HOMES attachments there is one. Before its slot, of that number, goes live.
 * CNI_ERROR_KERNEL_REFUSED. */
int container_add_homes(const struct objects *objects, const struct attachment_claims *claims,
			const struct slot *slot, uint32_t number, struct cni_error *err);

/* Takes an attachment away, whose slot is given: its ports go to those attachments of the
 * container that wait for them, in one step each, so that no client is refused. To repeat it does
 * no harm. CNI_ERROR_KERNEL_REFUSED. */
int container_leave(const struct objects *objects, const struct slot *slot, struct owner owner,
		    struct cni_error *err);

/* Deletes the endpoint of an attachment that leaves; where IPAM has given the address twice, or the
 * interface is in two networks, another one that lives gets it. CNI_ERROR_KERNEL_REFUSED. */
int container_return_address(const struct objects *objects, const struct endpoint_key *key,
			     const struct endpoint *endpoint, struct cni_error *err);

/* Finds another attachment of the slot's container that lives and has the same interface. */
bool container_find_other(const struct objects *objects, const struct slot *slot, uint32_t number,
			  struct owner *other);
