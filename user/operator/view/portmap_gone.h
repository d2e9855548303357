/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * portmap_gone.h - rules of the reference plugin portmap for containers that are gone.
 *
 * Such a rule goes on to get the packets of its port. It is removed where nobody can be its
 * container any more:
 *   no network namespace that an interface of this host leads to has the address to which the rule
 *   sends packets; or one has, and is known to be another container's, by our maps or by what
 *   runtimes keep of their ADDs;
 *   and no ADD of the rule's own container is kept whose namespace still exists.
 * Where one of these cannot be read, or a rule does not say whose it is, the rule stays.
 */
#pragma once

#include <jansson.h>

#include "host/host.h"
#include "operator/kernel/namespaces.h"
#include "nat/portmap_rules.h"

/* By what it is told who lives. Begins as {0}. */
struct portmap_evidence {
	const struct host *host;
	struct container_addresses addresses;
	json_t *cached; /* what runtimes keep of their ADDs */
};

/* The host is open. False: not everything could be read, so what is not seen may exist. Release it
 * all the same. */
bool portmap_evidence_gather(struct portmap_evidence *evidence, const struct host *host);
void portmap_evidence_release(struct portmap_evidence *evidence);

/* Whether the container of this entry is gone. */
bool portmap_container_is_gone(const struct portmap_evidence *evidence,
			       const struct portmap_entries *entries,
			       const struct portmap_entry *of);

/* Removes the rules of containers that are gone, or with dry_run would, prints a line for each of
 * these containers, and adds how many they are. The host is open. Goes on after a failure.
 * CNI_ERROR_KERNEL_REFUSED, CNI_ERROR_IO. */
int portmap_gone_remove(const struct host *host, bool dry_run, size_t *count,
			struct cni_error *err);
