/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* restore.c - turns a downgrade back that was killed, or failed. */
#include "operator/downgrade/restore.h"

#include "datapath/attach/socket_hooks.h"
#include "host/host.h"
#include "host/ready.h"
#include "lib/cleanup.h"
#include "operator/downgrade/quiet.h"

static int take_over(struct cni_error *err)
{
	struct take_over_report ignored;
	cleanup_host struct host host = {0};
	struct datapath *datapath = &host.datapath;

	/* Where nothing is pinned our programs may run still, with our maps. */
	if (host_open(&host, PINS_ALL, err) ||
	    (datapath->state == DATAPATH_ABSENT
		     ? datapath_recover(datapath, &host.addresses, err)
		     : datapath_upgrade(datapath, &host.addresses, &ignored, err)))
		return -1;
	/* Those at sockets went with the pins. */
	return datapath_is_usable(datapath) ? socket_hooks_repair(datapath, err) : 0;
}

int restore_after_downgrade(struct adds *adds, size_t *count, struct cni_error *err)
{
	struct cni_error failure = {0};
	int result;

	*count = 0;
	if (!adds->list)
		return 0;
	result = take_over(err) || adds_restore(adds, count, err) ? -1 : 0;
	if (quiet_end(&failure))
		result = cni_error_chain(err, &failure);
	if (!result)
		adds_finish(adds);
	return result;
}

int forget_downgrade(struct cni_error *err)
{
	cleanup_adds struct adds adds = ADDS_NONE;

	if (adds_open(&adds, err) || (adds.list && quiet_end(err)))
		return -1;
	adds_finish(&adds);
	return 0;
}
