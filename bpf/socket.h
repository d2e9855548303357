/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* socket.h - decides about a socket of the host that asks for an address and port: whether that is
 * a mapped port, what the program was told about it, and whether it may bind there. */
#ifndef BPF_PORTMAP_SOCKET_H
#define BPF_PORTMAP_SOCKET_H

#include "noticed.h"
#include "portmap.h"
#include "verdict.h"

/* What a program asks for, or is told. */
struct socket_peer {
	struct address address;
	__u16 port;
	enum protocol protocol;
};

/* Not a container's, nor another host's whose processes share the cgroup. */
INLINE bool socket_is_of_host(void *ctx)
{
	const struct meta *host = SINGLE(meta);

	return host && host->netns_cookie == bpf_get_netns_cookie(ctx);
}

/* As wide as the socket's: IPPROTO_MPTCP is 262. */
INLINE bool socket_has_ports(__u32 protocol)
{
	return protocol == PROTOCOL_TCP || protocol == PROTOCOL_UDP;
}

/* The unspecified address means loopback to connect(2) and sendto(2). */
INLINE void socket_name_loopback(struct address *address)
{
	if (address_is_unset(address->bytes))
		address->bytes[15] = 1;
	else if (address_is_ipv4(address->bytes) && !address_to_ipv4(address->bytes))
		address_from_ipv4(address->bytes, bpf_htonl(0x7f000001));
}

INLINE bool socket_reaches_host(const __u8 *address)
{
	return address_is_loopback(address) || bpf_map_lookup_elem(&host_addresses, address);
}

/* Connected, it would stay with whoever has the port now, or nobody: user space is told
 * where to look when the port changes hands. */
INLINE void socket_notice(const struct socket_peer *asked)
{
	if (asked->protocol == PROTOCOL_UDP && socket_reaches_host(asked->address.bytes))
		noticed_mark(local_udp_ports, asked->port);
}

/* NULL: what is asked for is none of ours. */
INLINE struct portmap *socket_find_mapping(const struct socket_peer *asked)
{
	const __u8 *address = asked->address.bytes;
	struct portmap *portmap = portmap_find(address, asked->port, asked->protocol);

	if (!portmap || !portmap->localhost || !socket_reaches_host(address) ||
	    portmap_is_excluded(&portmap->owner, address))
		return NULL;
	return portmap;
}

INLINE struct socket_peer socket_container(const struct portmap *portmap, enum protocol protocol)
{
	struct socket_peer container = {.port = portmap->container_port, .protocol = protocol};

	address_copy(container.address.bytes, portmap->container_address);
	return container;
}

INLINE void socket_key(void *ctx, const struct socket_peer *peer, struct socket_flow_key *key)
{
	__builtin_memset(key, 0, sizeof(*key));
	key->cookie = bpf_get_socket_cookie(ctx);
	address_copy(key->container_address, peer->address.bytes);
	key->container_port = peer->port;
	key->protocol = peer->protocol;
}

/* What the program asked for in place of the one that answers. NULL: that one itself. */
INLINE const struct socket_flow *socket_flow_of(void *ctx, const struct socket_peer *peer)
{
	struct socket_flow_key key;

	if (!noticed_has(local_container_ports, peer->port))
		return NULL;
	socket_key(ctx, peer, &key);
	return bpf_map_lookup_elem(&socket_flows, &key);
}

/* The socket has asked the container by this very name. */
INLINE bool socket_knows(void *ctx, const struct socket_peer *container,
			 const struct socket_peer *name)
{
	const struct socket_flow *known = socket_flow_of(ctx, container);

	return known && known->port == name->port &&
	       address_equal(known->address, name->address.bytes);
}

INLINE void socket_remember(void *ctx, const struct socket_peer *peer,
			    const struct socket_peer *name, __u64 flags)
{
	struct socket_flow flow = {.port = name->port};
	struct socket_flow_key key;

	socket_key(ctx, peer, &key);
	address_copy(flow.address, name->address.bytes);
	noticed_mark(local_container_ports, peer->port);
	bpf_map_update_elem(&socket_flows, &key, &flow, flags);
}

/* The socket is gone; or its program asks for the container itself now, after it asked for a
 * mapped port before, and is to be told what it asks for. */
INLINE void socket_forget(void *ctx, const struct socket_peer *container)
{
	struct socket_flow_key key;

	if (!socket_flow_of(ctx, container))
		return;
	socket_key(ctx, container, &key);
	bpf_map_delete_elem(&socket_flows, &key);
}

/* Somebody on the host whose own port is a mapped one has sent to this socket: what is sent back is
 * for him. But he gets nothing of a conversation with the container. */
INLINE void socket_note_sender(struct bpf_sock_addr *ctx, const struct socket_peer *sender)
{
	const struct portmap *portmap = socket_find_mapping(sender);
	struct socket_peer container;

	if (!portmap)
		return;
	container = socket_container(portmap, sender->protocol);
	if (!socket_knows(ctx, &container, sender))
		socket_remember(ctx, sender, sender, BPF_NOEXIST);
}

/* The container's address and port in place of what is asked for. False: as it is. */
INLINE bool socket_choose(struct bpf_sock_addr *ctx, struct socket_peer *asked,
			  bool bound_to_loopback)
{
	struct portmap *portmap = socket_find_mapping(asked);
	struct socket_peer container;

	if (!portmap) {
		socket_forget(ctx, asked);
		return false;
	}
	if (socket_flow_of(ctx, asked))
		return false; /* an answer to a sender */
	if (bound_to_loopback) {
		/* The kernel routes nothing from there to anywhere else. */
		count(local_bound_to_loopback);
		return false;
	}
	container = socket_container(portmap, asked->protocol);
	/* Writing to an LRU map costs more than looking: a socket sends to the same port again. */
	if (!socket_knows(ctx, &container, asked)) {
		socket_remember(ctx, &container, asked, BPF_ANY);
		__sync_fetch_and_add(&portmap->flows, 1);
	}
	*asked = container;
	return true;
}

/* What the program asked for in place of the container that answers. False: as it is. */
INLINE bool socket_recall(struct bpf_sock_addr *ctx, struct socket_peer *peer)
{
	const struct socket_flow *flow = socket_flow_of(ctx, peer);

	if (!flow)
		return false;
	address_copy(peer->address.bytes, flow->address);
	peer->port = flow->port;
	return true;
}

/* What is bound ("reserveHostPorts"). Refused is what would never reach the process: packets that a
 * reserved mapping takes. A port that the kernel chooses (0) is not known yet and never refused: at
 * the hook behind that choice (post_bind) whoever doesn't care about his port would fail at times.
 */
struct reserve_request {
	struct socket_peer asked;
	bool any;  /* the address is any of its family */
	bool ipv4; /* takes packets of IPv4 */
	bool ipv6;
	bool refused;
};

/* At a specific address: the mapping that takes its packets decides. */
INLINE bool reserve_has_address(const struct reserve_request *request)
{
	const __u8 *address = request->asked.address.bytes;
	const struct portmap *portmap;

	if (address_is_group(address) || address_is_ipv6_link_local(address))
		return false;
	portmap = portmap_find(address, request->asked.port, request->asked.protocol);
	if (!portmap || !portmap->reserved_on_host)
		return false;
	if (address_is_loopback(address) && !portmap->localhost)
		return false;
	return !portmap_is_excluded(&portmap->owner, address);
}

static long reserve_compare(void *map __attribute__((unused)), const struct portmap_key *key,
			    const struct portmap *portmap, struct reserve_request *request)
{
	if (!portmap->reserved_on_host || key->host_port != request->asked.port ||
	    key->protocol != request->asked.protocol || !owner_live(&portmap->owner) ||
	    !(address_is_ipv4(key->host_address) ? request->ipv4 : request->ipv6))
		return 0;
	request->refused = true;
	return 1;
}

/* At any address, where a single one may be reserved: a walk through all mappings, but only
 * for ports that have one, or had, on hosts where somebody reserves ports. */
INLINE bool reserve_refuses(struct reserve_request *request)
{
	if (!request->asked.port || !portmap_is_published(request->asked.port))
		return false;
	if (!request->any)
		return reserve_has_address(request);
	bpf_for_each_map_elem(&portmaps, reserve_compare, request, 0);
	return request->refused;
}

#endif
