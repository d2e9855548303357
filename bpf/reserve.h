/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * reserve.h - decides whether a process of the host may bind to an address and port
 * ("reserveHostPorts").
 *
 * What is reserved is what would never reach the process: packets that a reserved mapping
 * takes. A port that the kernel chooses (0) is not known yet and is never refused: at the
 * hook behind that choice (post_bind) programs that don't care about their port would fail
 * now and then.
 */
#ifndef BPF_PORTMAP_RESERVE_H
#define BPF_PORTMAP_RESERVE_H

#include "portmap.h"

/* What is bound. */
struct reserve_request {
	struct address address;
	__u16 port;
	enum protocol protocol;
	bool any;  /* the address is any of its family */
	bool ipv4; /* takes packets of IPv4 */
	bool ipv6;
	bool refused;
};

/* At a specific address: the mapping that takes its packets decides. */
static __always_inline bool reserve_has_address(const struct reserve_request *request)
{
	const __u8 *address = request->address.bytes;
	const struct portmap *portmap;

	if (address_is_group(address) || address_is_ipv6_link_local(address))
		return false;
	portmap = portmap_find(address, request->port, request->protocol);
	if (!portmap || !portmap->reserved_on_host)
		return false;
	if (address_is_loopback(address) && !portmap->localhost)
		return false;
	return !portmap_is_excluded(&portmap->owner, address);
}

static long reserve_compare(void *map __attribute__((unused)), const struct portmap_key *key,
			    const struct portmap *portmap, struct reserve_request *request)
{
	struct address address;
	bool meant;

	if (!portmap->reserved_on_host || key->host_port != request->port ||
	    key->protocol != request->protocol)
		return 0;
	address_copy(address.bytes, key->host_address);
	meant = address_is_ipv4(address.bytes) ? request->ipv4 : request->ipv6;
	if (!meant || !owner_live(&portmap->owner))
		return 0;
	request->refused = true;
	return 1;
}

static __always_inline bool reserve_has_any(const struct reserve_request *request, bool ipv4)
{
	const struct portmap *portmap;
	struct address any;

	address_any(any.bytes, ipv4);
	portmap = portmap_find_at(any.bytes, request->port, request->protocol);
	return portmap && portmap->reserved_on_host;
}

/* At any address, where a single one may be reserved: a walk through all mappings, but only
 * for ports that have one, or had, on hosts where somebody reserves ports. */
static __always_inline bool reserve_has_one(struct reserve_request *request)
{
	if ((request->ipv4 && reserve_has_any(request, true)) ||
	    (request->ipv6 && reserve_has_any(request, false)))
		return true;
	bpf_for_each_map_elem(&portmaps, reserve_compare, request, 0);
	return request->refused;
}

static __always_inline bool reserve_refuses(struct reserve_request *request)
{
	if (!request->port || !portmap_is_published(request->port))
		return false;
	return request->any ? reserve_has_one(request) : reserve_has_address(request);
}

#endif
