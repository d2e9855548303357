/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* masquerade_ports.c - the ports of masqueraded flows, as the host's settings leave them. */
#include "datapath/records/masquerade_ports.h"

#include <string.h>

#include "datapath/load/maps.h"
#include "lib/warning.h"
#include "net/port_ranges.h"

void masquerade_ports_read(struct masquerade_ports *ports)
{
	ports->enough = port_ranges_of_host(ports->ranges);
}

static bool are_same(const struct meta *meta, const struct masquerade_ports *ports)
{
	return !memcmp(meta->masquerade_ports, ports->ranges, sizeof(ports->ranges));
}

static bool choose(struct meta *meta)
{
	struct masquerade_ports ports;

	masquerade_ports_read(&ports);
	if (are_same(meta, &ports))
		return false;
	if (!ports.enough)
		warning("net.ipv4.ip_local_port_range leaves hardly a port to masquerade with, so"
			" the host's own connections and the containers' share it");
	memcpy(meta->masquerade_ports, ports.ranges, sizeof(ports.ranges));
	return true;
}

bool masquerade_ports_follow(struct meta *meta, const struct masquerade_ports *ports)
{
	return !are_same(meta, ports) && choose(meta);
}

/* A program that finds a range half new may at worst try a port of the host's own range; it
 * asks for a socket there, as at every port. */
int masquerade_ports_refresh(const struct objects *objects, const struct masquerade_ports *ports,
			     struct cni_error *err)
{
	struct meta meta;

	if (!meta_read(objects, &meta) || !masquerade_ports_follow(&meta, ports))
		return 0;
	return meta_write(objects, &meta, err);
}
