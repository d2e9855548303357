/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* portmap.h - finds the mapping of a host address and port. */
#pragma once

#include "packet.h"
#include "policy.h"

INLINE struct portmap *portmap_find_at(const __u8 *address, __u16 port, enum protocol protocol)
{
	struct portmap_key key = {.protocol = protocol, .host_port = port};
	struct portmap *portmap;

	address_copy(key.host_address, address);
	portmap = bpf_map_lookup_elem(&portmaps, &key);
	return portmap && owner_live(&portmap->owner) ? portmap : NULL;
}

/* Returns false where no mapping has this port, nor had since the last `repair`. */
INLINE bool portmap_is_published(__u16 port)
{
	return BIT_IS_SET(published_ports, (__u32)port);
}

/* Returns false where no mapping of a single address has this port. */
INLINE bool portmap_is_at_addresses(__u16 port)
{
	return BIT_IS_SET(published_ports, PORT_WORDS * 64 + port);
}

INLINE struct portmap *portmap_find_exact(const __u8 *address, __u16 port, enum protocol protocol)
{
	return portmap_is_at_addresses(port) ? portmap_find_at(address, port, protocol) : NULL;
}

INLINE struct portmap *portmap_find_any(bool ipv4, __u16 port, enum protocol protocol)
{
	struct address any = {};

	if (ipv4)
		address_from_ipv4(any.bytes, 0);
	return portmap_find_at(any.bytes, port, protocol);
}

INLINE struct portmap *portmap_before(struct portmap *mapping)
{
	return &((struct portmap_succession *)mapping)->before;
}

INLINE const struct portmap *portmap_earlier(const struct portmap *mapping)
{
	return &((const struct portmap_succession *)mapping)->earlier;
}

/* Returns whether the owner is one of those that the mapping's has replaced. */
INLINE bool portmap_has_replaced(struct portmap *mapping, const struct owner *owner)
{
	const struct portmap *before = portmap_before(mapping);

	return before->owner.slot && (owner_equal(&before->owner, owner) ||
				      owner_equal(&portmap_earlier(mapping)->owner, owner));
}

/* Returns whether there is a container before the mapping's that can get a connection. */
INLINE bool portmap_is_replaced(const struct portmap *before)
{
	return before->owner.slot && owner_live(&before->owner) &&
	       slot_has_veth(before->owner.slot);
}

INLINE bool portmap_has_veth(struct portmap *mapping)
{
	return slot_has_veth(mapping->owner.slot) || portmap_is_replaced(portmap_before(mapping));
}

/* A mapping of the exact address goes before one of any address; its owner's veth must exist, or
 * that of the one before. */
INLINE struct portmap *portmap_find(const __u8 *address, __u16 port, enum protocol protocol)
{
	struct portmap *portmap;

	if (!portmap_is_published(port))
		return NULL;
	portmap = portmap_find_exact(address, port, protocol);
	if (portmap && portmap_has_veth(portmap))
		return portmap;
	portmap = portmap_find_any(address_is_ipv4(address), port, protocol);
	return portmap && portmap_has_veth(portmap) ? portmap : NULL;
}

/* Not inlined, to keep the keys off the callers' stacks. */
GLOBAL_FUNCTION bool portmap_exists(const struct tuple *tuple)
{
	return tuple && portmap_find(tuple->destination, tuple->destination_port, tuple->protocol);
}

/* Returns whether the destination is mapped to this inside address and port, of this owner. */
GLOBAL_FUNCTION bool portmap_leads_to(const struct tuple *tuple, const struct connection_key *key,
				      const struct owner *owner)
{
	const struct portmap *portmap;

	if (!tuple || !key || !owner)
		return false;
	portmap = portmap_find(tuple->destination, tuple->destination_port, tuple->protocol);
	return portmap && owner_equal(&portmap->owner, owner) &&
	       portmap->container_port == key->inside_port &&
	       address_equal(portmap->container_address, key->inside);
}

/* Returns whether the mapping is not for this address of the host: a service's, a broadcast one. An
 * address that is named is meant. */
INLINE bool portmap_is_excluded(const struct portmap *portmap, const __u8 *address)
{
	const struct host_address *known = bpf_map_lookup_elem(&host_addresses, address);

	return (known && known->excluded && !portmap->names_address) ||
	       policy_excludes(&portmap->owner, address);
}

INLINE const struct nat_port *nat_port_at(const __u8 *address, __u16 port, enum protocol protocol)
{
	struct portmap_key key = {.protocol = protocol, .host_port = port};

	address_copy(key.host_address, address);
	return bpf_map_lookup_elem(&nat_ports, &key);
}

/* Returns whether the host's own NAT takes what comes to this port: no mapping begins a flow. */
GLOBAL_FUNCTION bool portmap_is_left(const struct address *address, __u16 port,
				     enum protocol protocol, enum nat_hook hook)
{
	const struct nat_port *taken;
	struct address any = {};

	if (!address || !BIT_IS_SET(published_ports, 2 * PORT_WORDS * 64 + port))
		return false;
	if (address_is_ipv4(address->bytes))
		address_from_ipv4(any.bytes, 0);
	taken = nat_port_at(address->bytes, port, protocol)
			?: nat_port_at(any.bytes, port, protocol);
	return taken && taken->hooks & hook;
}
