/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * attach.c - `bpf-portmap attach`: what ADD and CHECK do for the host, without a container. For
 * udev rules and administrators.
 */
#include <stdio.h>
#include <stdlib.h>

#include "lib/cleanup.h"
#include "datapath/records/attachment_remove.h"
#include "datapath/records/attachments.h"
#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "net/bridge_entry.h"
#include "net/port_ranges.h"
#include "datapath/attach/socket_hooks.h"
#include "plugin/commands.h"
#include "host/interfaces.h"
#include "host/ready.h"

static void print_change(const char *interface, const char *what)
{
	printf("%-15s %s\n", interface, what);
}

/* Of containers that live: the others' are gone by now. */
static void restore_macs(const struct host *host)
{
	cleanup_free struct attachment_entry *entries = NULL;
	cleanup_error struct cni_error ignored = {0};
	size_t count;

	if (attachment_list(&host->datapath, &entries, &count, &ignored))
		return;
	for (size_t i = 0; i < count; i++)
		bridge_entry_add(host->socket, entries[i].attachment.ifindex,
				 entries[i].attachment.container_mac);
}

/* A failure at one does not keep the others from it; *err has all of them. */
static int check_names(struct host *host, char *const *names, struct cni_error *err)
{
	struct cni_error failure = {0};
	int result = 0;

	for (; *names; names++)
		if (host_check_name(host, *names, &failure))
			result = cni_error_chain(err, &failure);
	return result;
}

static int refresh_port_ranges(const struct objects *objects, struct cni_error *err)
{
	cleanup_lock int lock = lock_take_claims(err);
	struct meta meta;

	if (lock < 0 || (meta_read(objects, &meta) && port_ranges_follow(&meta) &&
			 meta_write(objects, &meta, err)))
		return -1;
	return 0;
}

int command_load(struct cni_error *err)
{
	cleanup_host struct host host = {0};

	if (host_open(&host, PINS_ALL, err))
		return -1;
	return datapath_make_ready(&host.datapath, &host.addresses, 0, err);
}

int command_attach(char *const *operands, struct cni_error *err)
{
	cleanup_host struct host host = {.report = print_change};
	struct cni_error failure = {0};
	int result;

	if (host_open(&host, PINS_ALL, err) || host_recover(&host, err))
		return -1;
	/* At boot, for example. The first ADD attaches to everything. */
	if (!datapath_is_usable(&host.datapath))
		return check_names(&host, operands, err);
	result = check_names(&host, operands, err);
	abandoned_remove(&host.datapath, host.socket, ABANDONED_ALL);
	restore_macs(&host);
	if (host_settle_all(&host, operands, &failure))
		result = cni_error_chain(err, &failure);
	if (refresh_port_ranges(&host.datapath.objects, &failure) ||
	    socket_hooks_repair(&host.datapath, &failure))
		result = cni_error_chain(err, &failure);
	return result;
}
