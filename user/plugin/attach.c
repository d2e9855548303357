/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* attach.c - `bpf-portmap attach`: what ADD and CHECK do for the host's interfaces, without a
 * container: for udev rules and for people. */
#include <stdio.h>

#include "datapath/lock.h"
#include "datapath/masquerade_ports.h"
#include "datapath/networks.h"
#include "datapath/prepare.h"
#include "datapath/socket_hooks.h"
#include "plugin/commands.h"
#include "plugin/fast_path.h"
#include "plugin/interfaces.h"

static void print_change(const char *interface, const char *what)
{
	printf("%-15s %s\n", interface, what);
}

static int attach_for_network(const struct conf *conf, void *context, struct cni_error *err)
{
	static const struct host_veth none;

	return interfaces_attach(context, conf, &none, true, err);
}

static int refresh_ports(struct host *host, struct cni_error *err)
{
	cleanup_lock int lock = lock_take(err);

	return lock < 0 ? -1 : masquerade_ports_refresh(&host->datapath.objects, err);
}

static int attach_named(struct host *host, char *const *names, struct cni_error *err)
{
	for (; *names; names++)
		if (interfaces_attach_named(host, *names, err))
			return -1;
	return 0;
}

/* Each network's list decides as it did at its last ADD. */
static int attach(struct host *host, char *const *names, struct cni_error *err)
{
	if (*names ? attach_named(host, names, err)
		   : networks_visit(&host->datapath, attach_for_network, host, err))
		return -1;
	interfaces_sweep(host);
	if (interfaces_repair(host, err) || fast_path_refresh(host, err) ||
	    interfaces_refresh_addresses(host, err))
		return -1;
	return refresh_ports(host, err) ? -1 : socket_hooks_repair(&host->datapath, err);
}

int command_attach(char *const *interfaces, struct cni_error *err)
{
	cleanup_host struct host host = {.report = print_change};

	if (host_open(&host, PINS_ALL, err))
		return -1;
	if (host.datapath.state == DATAPATH_FOREIGN)
		return datapath_refuse_foreign(&host.datapath, err);
	/* At boot, say: there is nothing yet to attach, and the first ADD looks by itself. */
	if (datapath_recover(&host.datapath, &host.addresses, err))
		return -1;
	return datapath_is_usable(&host.datapath) ? attach(&host, interfaces, err) : 0;
}
