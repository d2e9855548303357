/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * socket.h - decides about a socket of the host that asks for an address and port: whether
 * that is a mapped port, and what the program was told about it.
 */
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
static __always_inline bool socket_is_of_host(void *ctx)
{
	__u32 only = 0;
	const struct meta *host = bpf_map_lookup_elem(&meta, &only);

	return host && host->netns_cookie == bpf_get_netns_cookie(ctx);
}

/* As wide as the socket's: IPPROTO_MPTCP is 262. */
static __always_inline bool socket_has_ports(__u32 protocol)
{
	return protocol == PROTOCOL_TCP || protocol == PROTOCOL_UDP;
}

/* The unspecified address means loopback to connect(2) and sendto(2). */
static __always_inline void socket_name_loopback(struct address *address)
{
	if (address_is_unset(address->bytes))
		address->bytes[15] = 1;
	else if (address_is_ipv4(address->bytes) && !address_to_ipv4(address->bytes))
		address_from_ipv4(address->bytes, bpf_htonl(0x7f000001));
}

static __always_inline bool socket_reaches_host(const __u8 *address)
{
	return address_is_loopback(address) || bpf_map_lookup_elem(&host_addresses, address);
}

/* Connected, it would stay with whoever has the port now, or nobody: user space is told
 * where to look when the port changes hands. */
static __always_inline void socket_notice(const struct socket_peer *asked)
{
	if (asked->protocol == PROTOCOL_UDP && socket_reaches_host(asked->address.bytes))
		noticed_mark_local_udp(asked->port);
}

/* NULL: what is asked for is none of ours. */
static __always_inline struct portmap *socket_find_mapping(const struct socket_peer *asked)
{
	const __u8 *address = asked->address.bytes;
	struct portmap *portmap = portmap_find(address, asked->port, asked->protocol);

	if (!portmap || !portmap->localhost || !socket_reaches_host(address) ||
	    portmap_is_excluded(&portmap->owner, address))
		return NULL;
	return portmap;
}

static __always_inline void socket_key(void *ctx, const __u8 *address, __u16 port,
				       enum protocol protocol, struct socket_flow_key *key)
{
	__builtin_memset(key, 0, sizeof(*key));
	key->cookie = bpf_get_socket_cookie(ctx);
	address_copy(key->container_address, address);
	key->container_port = port;
	key->protocol = protocol;
}

/* The socket has asked the container of the mapping by this very name. */
static __always_inline bool socket_knows(const struct socket_flow_key *container,
					 const struct socket_peer *asked)
{
	const struct socket_flow *known = bpf_map_lookup_elem(&socket_flows, container);

	return known && known->port == asked->port &&
	       address_equal(known->address, asked->address.bytes);
}

/* Writing to an LRU map costs more than looking: a socket sends to the same port again. */
static __always_inline bool socket_remember(struct bpf_sock_addr *ctx,
					    const struct portmap *portmap,
					    const struct socket_peer *asked)
{
	struct socket_flow flow = {.port = asked->port};
	struct socket_flow_key key;

	socket_key(ctx, portmap->container_address, portmap->container_port, asked->protocol, &key);
	if (socket_knows(&key, asked))
		return false;
	address_copy(flow.address, asked->address.bytes);
	noticed_mark_local_container(key.container_port);
	bpf_map_update_elem(&socket_flows, &key, &flow, BPF_ANY);
	return true;
}

/* The socket is gone; or its program asks for the container itself now, after it asked for a
 * mapped port before, and is to be told what it asks for. */
static __always_inline void socket_forget(void *ctx, const struct socket_peer *container)
{
	struct socket_flow_key key;

	if (!noticed_local_container(container->port))
		return;
	socket_key(ctx, container->address.bytes, container->port, container->protocol, &key);
	if (bpf_map_lookup_elem(&socket_flows, &key))
		bpf_map_delete_elem(&socket_flows, &key);
}

/* Somebody on the host whose own port is a mapped one has sent to this socket: what is sent
 * back is for him. But he gets nothing of a conversation with the container. */
static __always_inline void socket_note_sender(struct bpf_sock_addr *ctx,
					       const struct socket_peer *sender)
{
	const struct portmap *portmap = socket_find_mapping(sender);
	struct socket_flow flow = {.port = sender->port};
	struct socket_flow_key key;

	if (!portmap)
		return;
	socket_key(ctx, portmap->container_address, portmap->container_port, sender->protocol,
		   &key);
	if (socket_knows(&key, sender))
		return;
	socket_key(ctx, sender->address.bytes, sender->port, sender->protocol, &key);
	address_copy(flow.address, sender->address.bytes);
	noticed_mark_local_container(sender->port);
	bpf_map_update_elem(&socket_flows, &key, &flow, BPF_NOEXIST);
}

static __always_inline bool socket_is_answer(struct bpf_sock_addr *ctx,
					     const struct socket_peer *asked)
{
	struct socket_flow_key key;

	socket_key(ctx, asked->address.bytes, asked->port, asked->protocol, &key);
	return bpf_map_lookup_elem(&socket_flows, &key);
}

/* The container's address and port in place of what is asked for. False: as it is. */
static __always_inline bool socket_choose(struct bpf_sock_addr *ctx, struct socket_peer *asked,
					  bool bound_to_loopback)
{
	struct portmap *portmap;

	portmap = socket_find_mapping(asked);
	if (!portmap) {
		socket_forget(ctx, asked);
		return false;
	}
	if (socket_is_answer(ctx, asked))
		return false;
	if (bound_to_loopback) {
		/* The kernel routes nothing from there to anywhere else. */
		count(local_bound_to_loopback);
		return false;
	}
	if (socket_remember(ctx, portmap, asked))
		__sync_fetch_and_add(&portmap->flows, 1);
	address_copy(asked->address.bytes, portmap->container_address);
	asked->port = portmap->container_port;
	return true;
}

/* What the program asked for in place of the container that answers. False: as it is. */
static __always_inline bool socket_recall(struct bpf_sock_addr *ctx, struct socket_peer *peer)
{
	const struct socket_flow *flow;
	struct socket_flow_key key;

	if (!noticed_local_container(peer->port))
		return false;
	socket_key(ctx, peer->address.bytes, peer->port, peer->protocol, &key);
	flow = bpf_map_lookup_elem(&socket_flows, &key);
	if (!flow)
		return false;
	address_copy(peer->address.bytes, flow->address);
	peer->port = flow->port;
	return true;
}

#endif
