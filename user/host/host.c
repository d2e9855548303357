/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* host.c - the host during one command. */
#include "host/host.h"

#include <string.h>

#include "host/prepare.h"
#include "datapath/load/probe.h"
#include "lib/warning.h"
#include "net/netlink.h"

void host_report(const struct host *host, const char *interface, const char *what)
{
	if (host->report)
		host->report(interface, what);
}

static void host_begin(struct host *host)
{
	*host = (struct host){.report = host->report};
	objects_clear(&host->datapath.objects);
	host->opened = true;
}

static int open_net(struct host *host, struct cni_error *err)
{
	host->socket = netlink_open(err);
	if (!host->socket)
		return -1;
	return address_list_read(&host->addresses, host->socket, err);
}

int host_open(struct host *host, enum pins_use use, struct cni_error *err)
{
	host_begin(host);
	if (open_net(host, err) || datapath_open(&host->datapath, use, err))
		return -1;
	/* Who has opened pins may call bpf(). */
	return datapath_is_usable(&host->datapath) ? 0 : probe_permission(err);
}

int host_open_if_usable(struct host *host, struct cni_error *err)
{
	host_begin(host);
	if (datapath_open(&host->datapath, PINS_TO_ADD, err))
		return -1;
	return datapath_is_usable(&host->datapath) ? open_net(host, err) : 0;
}

void host_close(struct host *host)
{
	if (!host->opened)
		return;
	datapath_close(&host->datapath);
	address_list_release(&host->addresses);
	if (host->socket)
		nl_socket_free(host->socket);
	memset(host, 0, sizeof(*host));
}

static void warn_about_layout(const struct datapath *datapath)
{
	struct cni_error why = {0};

	datapath_refuse_foreign(datapath, &why);
	warning("nothing was cleaned up: %s", cni_error_message(&why));
	cni_error_release(&why);
}

int host_open_to_clean(struct host *host, bool *usable, struct cni_error *err)
{
	host_begin(host);
	*usable = false;
	if (datapath_open(&host->datapath, PINS_TO_REMOVE, err))
		return -1;
	if (!datapath_is_usable(&host->datapath)) {
		/* Without permission nothing would be found, which must not pass for
		 * "nothing is there". */
		if (probe_permission(err) || open_net(host, err) ||
		    datapath_recover(&host->datapath, &host->addresses, err))
			return -1;
		if (host->datapath.state == DATAPATH_FOREIGN)
			warn_about_layout(&host->datapath);
	}
	*usable = datapath_is_usable(&host->datapath);
	return 0;
}
