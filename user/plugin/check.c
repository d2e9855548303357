/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* check.c - CHECK: compares what was asked for with what the kernel has. */
#include "datapath/records/attachment_remove.h"
#include "datapath/load/maps.h"
#include "plugin/commands.h"
#include "host/container.h"
#include "net/bridge_entry.h"
#include "host/interfaces.h"
#include "host/host_sockets.h"
#include "host/prerequisites.h"
#include "datapath/records/attachment_verify.h"

static int require_datapath(struct host *host, struct cni_error *err)
{
	/* Pins that were lost under running programs are made again. */
	if (host_recover(host, err))
		return -1;
	if (datapath_is_usable(&host->datapath))
		return 0;
	return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
			     "the maps and programs of bpf-portmap are not loaded; the next ADD"
			     " loads them, but this container must be added again");
}

/* What came since the last look, and what others have changed, is settled rather than reported;
 * what was there and is gone is an error. */
static int verify_programs(struct host *host, const struct container *container,
			   const char *network, struct cni_error *err)
{
	const struct look_at at = {.container = container, .network = network, .entries = true};
	cleanup_look struct host_look look = {0};
	cleanup_plan struct plan plan = {0}, done = {0};

	if (host_plan(&look, &plan, host, &at, err))
		return -1;
	plan_warn(&plan);
	if (plan_refuse_damage(&plan, err) || host_settle(host, &at, &done, err))
		return -1;
	if (plan.unmatched_uplinks && !container_wants_nothing(container))
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED, "%s", plan.unmatched_uplinks);
	return 0;
}

static int verify(struct host *host, struct container *container, const char *network,
		  struct cni_error *err)
{
	bool with_ports = container->conf.port_count > 0;
	struct attachment record;

	abandoned_remove(&host->datapath, host->socket, ABANDONED_NOTICED);
	container_choose_fast_path(container, &host->datapath.objects);
	if (attachment_verify(&host->datapath, &container->claims, with_ports, err))
		return -1;
	/* The MAC of its ADD: by now it may have taken another one, the bridge's, for example. */
	if (attachment_read(&host->datapath.objects, &container->claims.key, &record))
		bridge_entry_add(host->socket, container->veth.link.ifindex, record.container_mac);
	if (verify_programs(host, container, network, err) ||
	    host_sockets_verify(host, &container->conf, err))
		return -1;
	return prerequisites_verify(host, container, err);
}

int command_check(const struct cni_environment *environment,
		  const struct cni_network_config *config, struct cni_error *err)
{
	cleanup_container struct container container = {0};
	cleanup_host struct host host = {0};
	struct attachment record;

	if (container_read(&container, environment, config, err) || host_open(&host, PINS_ALL, err))
		return -1;
	/* A container that asks for nothing may have no record. */
	if (container_wants_nothing(&container) &&
	    (!datapath_is_usable(&host.datapath) ||
	     !attachment_read(&host.datapath.objects, &container.claims.key, &record)))
		return 0;
	if (require_datapath(&host, err) ||
	    container_find_veth(&container, environment->netns, environment->ifname, &host, err))
		return -1;
	return verify(&host, &container, config->name, err);
}
