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
#include "datapath/records/host_addresses.h"
#include "datapath/load/maps.h"
#include "net/bridge_entry.h"
#include "net/port_ranges.h"
#include "datapath/records/networks.h"
#include "datapath/attach/socket_hooks.h"
#include "plugin/commands.h"
#include "host/foreign_programs.h"
#include "host/interfaces.h"
#include "host/ready.h"
#include "host/removal.h"

static void print_change(const char *interface, const char *what)
{
	printf("%-15s %s\n", interface, what);
}

static int attach_for_network(const struct conf *conf, void *context, struct cni_error *err)
{
	static const struct host_veth none;

	return interfaces_attach(context, conf, &none, true, err);
}

/* A failure does not end it; *err has all of them. */
static int visit_named(struct host *host, char *const *names,
		       int (*visit)(struct host *host, const char *name, struct cni_error *err),
		       struct cni_error *err)
{
	struct cni_error failure = {0};
	int result = 0;

	for (; *names; names++)
		if (visit(host, *names, &failure))
			result = cni_error_chain(err, &failure);
	return result;
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

static int refresh(struct host *host, struct cni_error *err)
{
	const struct objects *objects = &host->datapath.objects;
	cleanup_free bool *excluded = NULL;
	cleanup_lock int lock = -1;
	struct meta meta;

	abandoned_remove(&host->datapath, host->socket, ABANDONED_ALL);
	restore_macs(host);
	interfaces_sweep(host);
	if (interfaces_repair(host, err) || fast_path_refresh(host, NULL, err))
		return -1;
	excluded = host_addresses_read_excluded(objects, &host->addresses);
	if (host_addresses_refresh(objects, host->socket, &host->addresses, excluded, err))
		return -1;
	lock = lock_take(err);
	if (lock < 0 || (meta_read(objects, &meta) && port_ranges_follow(&meta) &&
			 meta_write(objects, &meta, err)))
		return -1;
	lock_release(&lock);
	return socket_hooks_repair(&host->datapath, err);
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
		return visit_named(&host, operands, interfaces_check_named, err);
	/* Where it attaches for the first time, attaching warns. */
	run_before_warn_all(&host);
	/* Without names: as the conflist of each network said at its last ADD. */
	result = *operands ? visit_named(&host, operands, interfaces_attach_named, err)
			   : networks_visit(&host.datapath, attach_for_network, &host, err);
	if (refresh(&host, &failure))
		result = cni_error_chain(err, &failure);
	return host_withdraw_if_removed(&host, result, err);
}
