/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* reservation.c - reserveHostPorts: ports that no process of the host can bind to. */
#include "plugin/reservation.h"

#include <unistd.h>

#include "datapath/cgroup_root.h"
#include "datapath/socket_hooks.h"

static int explain(struct cni_error *err)
{
	return cni_error_wrap(err, "\"reserveHostPorts\"");
}

static bool is_wanted(const struct conf *conf)
{
	return conf->reserve_host_ports && conf->port_count;
}

int reservation_set_up(const struct host *host, const struct conf *conf, struct cni_error *err)
{
	if (is_wanted(conf) && socket_hooks_attach(&host->datapath, SOCKETS_LEAVE_PORTS, err))
		return explain(err);
	return 0;
}

int reservation_verify(const struct host *host, const struct conf *conf, struct cni_error *err)
{
	if (is_wanted(conf) && socket_hooks_verify(&host->datapath, SOCKETS_LEAVE_PORTS, err))
		return explain(err);
	return 0;
}

int reservation_probe(const struct conf *conf, struct cni_error *err)
{
	struct cgroup_root root;

	if (!conf->reserve_host_ports)
		return 0;
	if (cgroup_root_open(&root, err))
		return explain(err);
	close(root.fd);
	return 0;
}
