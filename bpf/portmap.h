/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* portmap.h - which mapping a port of a host address has. */
#ifndef BPF_PORTMAP_PORTMAP_H
#define BPF_PORTMAP_PORTMAP_H

#include "address.h"
#include "owner.h"
#include "policy.h"

static __always_inline struct portmap *portmap_find_at(const __u8 *address, __u16 port,
						       enum protocol protocol)
{
	struct portmap_key key = {.protocol = protocol, .host_port = port};
	struct portmap *portmap;

	address_copy(key.host_address, address);
	portmap = bpf_map_lookup_elem(&portmaps, &key);
	return portmap && owner_live(&portmap->owner) && owner_has_veth(portmap->owner.slot)
		       ? portmap
		       : NULL;
}

/* False: nobody has it mapped, or ever had. */
static __always_inline bool portmap_is_published(__u16 port)
{
	__u32 word = port >> 6;
	const __u64 *bits = bpf_map_lookup_elem(&published_ports, &word);

	return bits && (*bits >> (port & 63) & 1);
}

/* The exact address before any of its family. */
static __always_inline struct portmap *portmap_find(const __u8 *address, __u16 port,
						    enum protocol protocol)
{
	struct portmap *portmap;
	struct address any;

	if (!portmap_is_published(port))
		return NULL;
	portmap = portmap_find_at(address, port, protocol);
	if (portmap)
		return portmap;
	address_any(any.bytes, address_is_ipv4(address));
	return portmap_find_at(any.bytes, port, protocol);
}

/* Local to routing, but a service's or a subnet's, or one that the list leaves out. */
static __always_inline bool portmap_is_excluded(const struct owner *owner, const __u8 *address)
{
	const struct host_address *known = bpf_map_lookup_elem(&host_addresses, address);

	return (known && known->excluded) || policy_excludes(owner, address);
}

#endif
