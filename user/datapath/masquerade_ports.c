/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* masquerade_ports.c - the ports of masqueraded flows, as the host's settings leave them. */
#include "datapath/masquerade_ports.h"

#include <string.h>

#include "datapath/maps.h"
#include "datapath/warning.h"
#include "net/port_ranges.h"

bool masquerade_ports_choose(struct meta *meta)
{
	struct port_range ranges[MASQUERADE_RANGES];
	bool enough = port_ranges_of_host(ranges);

	if (!memcmp(meta->masquerade_ports, ranges, sizeof(ranges)))
		return false;
	if (!enough)
		warning("net.ipv4.ip_local_port_range leaves hardly a port to masquerade with, so"
			" the host's own connections and the containers' share it");
	memcpy(meta->masquerade_ports, ranges, sizeof(ranges));
	return true;
}

/* A program that finds a range half new may at worst try a port of the host's own range; it
 * asks for a socket there, as at every port. */
int masquerade_ports_refresh(const struct objects *objects, struct cni_error *err)
{
	struct meta meta;

	if (!meta_read(objects, &meta) || !masquerade_ports_choose(&meta))
		return 0;
	return meta_write(objects, &meta, err);
}
