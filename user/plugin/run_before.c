/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* run_before.c - warnings of other people's tc programs that run before ours. */
#include "plugin/run_before.h"

#include "datapath/ahead.h"
#include "datapath/hooks.h"
#include "datapath/maps.h"
#include "datapath/warning.h"
#include "net/link_names.h"

/* With more than these ADD looks at none, for that would take too long. */
#define MANY_INTERFACES 8

static void warn_at(struct host *host, uint32_t ifindex, const struct interface *interface,
		    bool new_qdisc)
{
	char text[AHEAD_SIZE], name[IF_NAMESIZE];

	for (int hook = 0; hook < HOOK_COUNT; hook++)
		if (program_at(interface, hook) != PROGRAM_COUNT &&
		    ahead_find(host->socket, ifindex, hook, new_qdisc, text) &&
		    link_name(host->socket, ifindex, name))
			warning("%s: %s runs before %s at %s: packets that it does not pass on"
				" do not reach mapped ports",
				name, text, program_name(program_at(interface, hook)),
				hook_name(hook));
}

static void warn_at_known(struct host *host, uint32_t ifindex)
{
	struct interface interface;

	if (interface_read(&host->datapath.objects, ifindex, &interface))
		warn_at(host, ifindex, &interface, false);
}

void run_before_warn_container(struct host *host, const struct container *container, bool new_qdisc)
{
	uint32_t bridge = container->veth.bridge.ifindex;

	warn_at(host, container->target.ifindex, &container->target.interface, new_qdisc);
	if (bridge)
		warn_at_known(host, bridge);
	if (host->addresses.count > MANY_INTERFACES)
		return;
	for (size_t i = 0; i < host->addresses.count; i++)
		if (host->addresses.interfaces[i].ifindex != bridge &&
		    host->addresses.interfaces[i].ifindex != container->target.ifindex)
			warn_at_known(host, host->addresses.interfaces[i].ifindex);
}

static bool warn_at_each(const void *key, const void *value, void *context)
{
	warn_at(context, *(const uint32_t *)key, value, false);
	return true;
}

void run_before_warn_all(struct host *host)
{
	maps_walk(host->datapath.objects.maps[MAP_INTERFACES], sizeof(uint32_t),
		  sizeof(struct interface), warn_at_each, host);
}
