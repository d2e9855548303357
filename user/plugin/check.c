/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* check.c - CHECK: compares what was asked for with what the kernel has. */
#include "datapath/records/attachment_remove.h"
#include "datapath/load/maps.h"
#include "plugin/commands.h"
#include "host/container.h"
#include "net/bridge_entry.h"
#include "host/foreign_programs.h"
#include "host/interfaces.h"
#include "host/removal.h"
#include "host/host_sockets.h"
#include "host/prerequisites.h"
#include "datapath/records/attachment_verify.h"
#include "datapath/attach/attach_verify.h"

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

static int verify(struct host *host, struct container *container, struct cni_error *err)
{
	const struct attach_target *target = &container->target;
	bool with_ports = container->conf.port_count > 0;
	struct attachment record;
	char missing[MISSING_SIZE];

	abandoned_remove(&host->datapath, host->socket, ABANDONED_NOTICED);
	fast_path_choose_mode(host, container);
	if (attachment_verify(&host->datapath, &container->claims, with_ports, err))
		return -1;
	if (!attach_verify(&host->datapath, target->ifindex, &target->interface, missing))
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "the host's end %s of the container's veth: %s", target->name,
				     missing);
	/* The MAC of its ADD: by now it may have taken another one, the bridge's, for example. */
	if (attachment_read(&host->datapath.objects, &container->claims.key, &record))
		bridge_entry_add(host->socket, target->ifindex, record.container_mac);
	/* An interface that came up since is attached to rather than reported. */
	if (interfaces_attach(host, &container->conf, &container->veth, false, err))
		return -1;
	run_before_warn_all(host);
	/* Programs of others that came since turn the fast path off. */
	if (fast_path_refresh(host, container, err))
		return -1;
	if (interfaces_verify(host, err) || host_sockets_verify(host, &container->conf, err))
		return -1;
	return prerequisites_verify(host, container, err);
}

int command_check(const struct cni_environment *environment,
		  const struct cni_network_config *config, struct cni_error *err)
{
	cleanup_container struct container container = {.netns = -1};
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
	    container_find_veth(&container, environment, &host, err))
		return -1;
	return host_withdraw_if_removed(&host, verify(&host, &container, err), err);
}
