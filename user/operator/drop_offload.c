/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * drop_offload.c - `bpf-portmap drop-offload`: every flow goes through the IP stack, with its
 * firewall as it is now, before it may skip the stack again.
 */
#include <stdio.h>

#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "host/host.h"
#include "lib/clock.h"
#include "operator/verbs.h"

/* Under the lock, for ADD writes meta too. Only one aligned word changes, so that no program reads
 * a value that is half written. */
static int drop(const struct objects *objects, struct cni_error *err)
{
	cleanup_lock int lock = lock_take_claims(err);
	struct meta meta;

	if (lock < 0)
		return -1;
	if (!meta_read(objects, &meta))
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "cannot read the map meta; `bpf-portmap doctor` says what is"
				     " damaged");
	meta.offload_dropped = clock_of_programs();
	return meta_write(objects, &meta, err);
}

int verb_drop_offload(const struct options *options, char *const *operands, struct cni_error *err)
{
	cleanup_host struct host host = {0};

	if (host_open(&host, DATAPATH_WORK, err) || host_recover(&host, err))
		return -1;
	if (!datapath_is_usable(&host.datapath)) {
		puts("no container was ever added: there is nothing to drop");
		return 0;
	}
	if (drop(&host.datapath.objects, err))
		return -1;
	puts("no flow skips the IP stack until its firewall has let it through again");
	return 0;
}
