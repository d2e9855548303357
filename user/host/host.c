/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* host.c - the host during one command. */
#include "host/host.h"

#include <stdlib.h>
#include <string.h>

#include "datapath/attach/roles.h"
#include "datapath/load/maps.h"
#include "lib/cleanup.h"
#include "lib/text.h"
#include "lib/error.h"
#include "net/link.h"
#include "net/netlink.h"

void host_report(const struct host *host, const char *interface, const char *what)
{
	cleanup_free char *name = cni_format("%s", interface);

	cni_printable(name, "");
	if (host->report)
		host->report(name, what, host->report_context);
}

static void host_begin(struct host *host)
{
	*host = (struct host){.report = host->report,
			      .report_context = host->report_context,
			      .datapath.lock = -1};
	objects_clear(&host->datapath.objects);
	host->opened = true;
}

static int open_net(struct host *host, struct cni_error *err)
{
	host->socket = netlink_route(err);
	if (!host->socket)
		return -1;
	return address_list_read(&host->addresses, err);
}

int host_open(struct host *host, enum datapath_use use, struct cni_error *err)
{
	host_begin(host);
	if (open_net(host, err) || datapath_open(&host->datapath, use, err))
		return -1;
	/* A process that has opened pins may call bpf(). */
	return datapath_is_usable(&host->datapath) ? 0 : probe_permission(err);
}

void host_end(struct host *host)
{
	if (!host->opened)
		return;
	address_list_release(&host->addresses);
	free(host->interfaces);
	memset(host, 0, sizeof(*host));
}

void host_close(struct host *host)
{
	if (host->opened)
		datapath_close(&host->datapath);
	host_end(host);
}

bool host_maps_ports_at(const struct host *host, const struct local_address *address)
{
	uint32_t ifindex = host->addresses.interfaces[address->interface].ifindex;
	struct interface known;

	if (host->interfaces)
		return !address->is_broadcast && !host->interfaces[address->interface].excluded;
	return !address->is_broadcast &&
	       !(interface_read(&host->datapath.objects, ifindex, &known) &&
		 known.addresses_excluded);
}

bool host_serves(const struct host *host, size_t interface, char name[IF_NAMESIZE])
{
	uint32_t ifindex = host->addresses.interfaces[interface].ifindex;
	struct interface known;

	if (!host->interfaces)
		return interface_read(&host->datapath.objects, ifindex, &known) &&
		       interface_is_served(&known) && link_name(ifindex, name);
	memcpy(name, host->interfaces[interface].name, IF_NAMESIZE);
	return host->interfaces[interface].served;
}

int host_open_to_clean(struct host *host, struct cni_error *err)
{
	cleanup_error struct cni_error why = {0};

	host_begin(host);
	if (datapath_open(&host->datapath, DATAPATH_WORK_BY_META, err))
		return -1;
	if (datapath_is_usable(&host->datapath))
		return 0;
	/* Without permission nothing is found, which does not mean that nothing is there. */
	if (probe_permission(err) || open_net(host, err) || host_recover_any(host, err))
		return -1;
	if (host->datapath.state == DATAPATH_FOREIGN) {
		datapath_refuse_foreign(&host->datapath, &why);
		warning("nothing was cleaned up: %s", cni_error_message(&why));
	}
	return 0;
}
