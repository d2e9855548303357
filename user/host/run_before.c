/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* run_before.c - warnings of tc programs of others that run before ours. */
#include "host/run_before.h"

#include "datapath/attach/foreign_tc.h"
#include "datapath/attach/hooks.h"
#include "datapath/load/maps.h"
#include "lib/warning.h"
#include "net/link.h"

void run_before_warn(struct host *host, uint32_t ifindex, const struct interface *interface,
		     bool new_qdisc)
{
	char text[FOREIGN_TC_SIZE], name[IF_NAMESIZE];

	for (int hook = 0; hook < HOOK_COUNT; hook++)
		if (program_at(interface, hook) != PROGRAM_COUNT &&
		    foreign_tc_ahead(host->socket, ifindex, hook, new_qdisc, text) &&
		    link_name(host->socket, ifindex, name))
			warning("%s: %s runs before %s at %s: packets that it does not pass on"
				" do not reach mapped ports",
				name, text, program_name(program_at(interface, hook)),
				hook_name(hook));
}

void run_before_warn_container(struct host *host, const struct container *container, bool new_qdisc)
{
	uint32_t bridge = container->veth.bridge.ifindex;
	struct interface known;

	run_before_warn(host, container->target.ifindex, &container->target.interface, new_qdisc);
	if (bridge && interface_read(&host->datapath.objects, bridge, &known))
		run_before_warn(host, bridge, &known, false);
}

static int warn_at(struct host *host, uint32_t ifindex, const struct interface *interface,
		   void *context, struct cni_error *err)
{
	run_before_warn(host, ifindex, interface, false);
	return 0;
}

void run_before_warn_all(struct host *host)
{
	cleanup_error struct cni_error ignored = {0};

	host_walk_interfaces(host, warn_at, NULL, &ignored);
}
