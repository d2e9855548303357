/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * socket.bpf.c - programs for the host's own sockets: they connect them to containers of mapped
 * ports, report the address asked for as their peer, and refuse bind(2) to reserved ports.
 *
 * A host process that connects to a mapped port, at a loopback or any other address of the host,
 * gets a socket to the container itself: its packets need no rewriting, no loopback address is seen
 * outside lo (route_localnet stays 0: CVE-2020-8558), and the container sees the address that the
 * host has towards it. What they leave as it is comes to lo, and is translated there (loopback.h):
 * that is slower, and takes nothing from what a socket can do.
 *
 *   program          runs at                                        does
 *   connect4, 6      connect(2) of TCP, before there is a route     asked -> container
 *   sendmsg4, 6      sendto(2), sendmsg(2) of unconnected UDP       asked -> container
 *   recvmsg4, 6      recvfrom(2), recvmsg(2) of UDP                 container -> asked
 *   getpeername4, 6  getpeername(2)                                 container -> asked
 *   bind4, 6         bind(2), if ports are reserved                 refuses
 *
 * A connected UDP socket keeps the peer that it has asked for: it may outlive any container, and no
 * program is called when it sends.
 *
 * For an IPv6 socket with an IPv4 peer, connect, receive and getpeername run the IPv6 programs with
 * a v4-mapped address, but sendto runs sendmsg4.
 *
 * They are attached to the root of cgroup2 and see the sockets of all processes, containers' too,
 * so they check the network namespace. Only bind4 and bind6 ever refuse anything.
 */
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include "noticed.h"
#include "replace.h"
#include "verdict.h"

#define REFUSE 0
#define ALLOW 1
#define EADDRINUSE 98

/* Whether bind(2) can fail with EADDRINUSE (bpf_set_retval, at this hook since 6.1); else EPERM. */
const volatile bool can_give_reason = false;

/* The peer that a process asks for, or is told. */
struct socket_peer {
	struct address address;
	__u16 port;
	enum protocol protocol;
};

/* False for containers' sockets, and for other hosts whose processes share the cgroup. */
INLINE bool socket_is_of_host(void *ctx)
{
	return SINGLE(meta)->netns_cookie == bpf_get_netns_cookie(ctx);
}

/* __u32 like the socket's protocol: IPPROTO_MPTCP is 262. */
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

INLINE struct portmap *socket_find_mapping(const struct socket_peer *asked)
{
	const __u8 *address = asked->address.bytes;
	struct portmap *portmap = portmap_find(address, asked->port, asked->protocol);

	if (!portmap || !portmap->localhost || !socket_reaches_host(address) ||
	    portmap_is_excluded(portmap, address) ||
	    portmap_is_left(&asked->address, asked->port, asked->protocol, NAT_FROM_HOST))
		return NULL;
	return portmap;
}

INLINE struct socket_peer socket_container(const struct portmap *portmap, enum protocol protocol)
{
	struct socket_peer container = {.port = portmap->container_port, .protocol = protocol};

	address_copy(container.address.bytes, portmap->container_address);
	return container;
}

/* The barrier keeps the compiler from adding the member's offset ahead of the load: the verifier
 * allows no load through such a pointer. */
INLINE struct bpf_sock *socket_of(struct bpf_sock_addr *ctx)
{
	barrier_var(ctx);
	return ctx->sk;
}

INLINE struct socket_flows *socket_flows_of(struct bpf_sock_addr *ctx, __u64 flags)
{
	struct bpf_sock *sk = socket_of(ctx);

	return sk ? bpf_sk_storage_get(&socket_flows, sk, NULL, flags) : NULL;
}

/* Under the lock. Returns SOCKET_PLACES if the container's address and port have no place. */
INLINE __u32 socket_place_of(const struct socket_flows *flows, const struct socket_peer *container)
{
	for (__u32 i = 0; i < SOCKET_PLACES; i++)
		if (flows->places[i].container_port == container->port &&
		    address_equal(flows->places[i].container_address, container->address.bytes))
			return i;
	return SOCKET_PLACES;
}

/* Finds the peer that the process asked for instead of this one. False: this one. */
INLINE bool socket_asked(struct bpf_sock_addr *ctx, const struct socket_peer *peer,
			 struct socket_peer *asked)
{
	struct socket_flows *flows;
	__u32 place;

	if (!peer->port || !noticed_has(local_container_ports, peer->port))
		return false;
	flows = socket_flows_of(ctx, 0);
	if (!flows)
		return false;
	bpf_spin_lock(&flows->lock);
	place = socket_place_of(flows, peer);
	if (place < SOCKET_PLACES) {
		address_copy(asked->address.bytes, flows->places[place].asked_address);
		asked->port = flows->places[place].asked_port;
	}
	bpf_spin_unlock(&flows->lock);
	return place < SOCKET_PLACES;
}

/* Whether the socket reached the container by this address and port. */
INLINE bool socket_knows(struct bpf_sock_addr *ctx, const struct socket_peer *container,
			 const struct socket_peer *name)
{
	struct socket_peer known;

	return socket_asked(ctx, container, &known) && known.port == name->port &&
	       address_equal(known.address.bytes, name->address.bytes);
}

/* Takes the place that the container has, else the ring's next one. */
INLINE void socket_remember(struct bpf_sock_addr *ctx, const struct socket_peer *container,
			    const struct socket_peer *name, enum socket_ring ring)
{
	struct socket_flows *flows = socket_flows_of(ctx, BPF_SK_STORAGE_GET_F_CREATE);
	__u32 place;

	if (!flows || !container->port)
		return;
	noticed_mark(local_container_ports, container->port);
	bpf_spin_lock(&flows->lock);
	place = socket_place_of(flows, container);
	if (place == SOCKET_PLACES)
		place = ring == RING_ASKED
				? flows->next[ring]++ % RING_ASKED_PLACES
				: RING_ASKED_PLACES +
					  flows->next[ring]++ % (SOCKET_PLACES - RING_ASKED_PLACES);
	if (place < SOCKET_PLACES) {
		address_copy(flows->places[place].container_address, container->address.bytes);
		address_copy(flows->places[place].asked_address, name->address.bytes);
		flows->places[place].container_port = container->port;
		flows->places[place].asked_port = name->port;
	}
	bpf_spin_unlock(&flows->lock);
}

/* The socket's process now connects to the container itself. */
INLINE void socket_forget(struct bpf_sock_addr *ctx, const struct socket_peer *container)
{
	struct socket_peer asked;

	if (socket_asked(ctx, container, &asked))
		socket_remember(ctx, container, container, RING_ASKED);
}

/* A host process whose own port is a mapped one has sent to this socket, and must get the replies,
 * unless the socket already talks to the container. */
INLINE void socket_note_sender(struct bpf_sock_addr *ctx, const struct socket_peer *sender)
{
	const struct portmap *portmap = socket_find_mapping(sender);
	struct socket_peer container;

	if (!portmap)
		return;
	container = socket_container(portmap, sender->protocol);
	if (!socket_knows(ctx, &container, sender))
		socket_remember(ctx, sender, sender, RING_SENDERS);
}

/* Replaces a mapped port by the container's address and port. False: unchanged. The kernel does not
 * route from loopback addresses to elsewhere. */
INLINE bool socket_choose(struct bpf_sock_addr *ctx, struct socket_peer *asked,
			  bool bound_to_loopback)
{
	struct portmap *portmap = socket_find_mapping(asked);
	struct socket_peer container, sender;

	if (!portmap) {
		socket_forget(ctx, asked);
		return false;
	}
	if (bound_to_loopback || socket_asked(ctx, asked, &sender))
		return false; /* the latter: a reply to a sender */
	if (portmap_before(portmap)->localhost &&
	    portmap_waits(ctx, portmap, portmap_before(portmap), asked->protocol))
		portmap = portmap_before(portmap);
	container = socket_container(portmap, asked->protocol);
	if (!socket_knows(ctx, &container, asked)) {
		socket_remember(ctx, &container, asked, RING_ASKED);
		__sync_fetch_and_add(&portmap->flows, 1);
	}
	*asked = container;
	return true;
}

/* A bind(2) request ("reserveHostPorts") is refused if a reserved mapping would take the packets,
 * but not if the kernel chooses the port: at the later hook (post_bind), processes that accept any
 * port would fail at times. */
struct reserve_request {
	struct socket_peer asked;
	bool any;  /* the unspecified address of its family */
	bool ipv4; /* takes packets of IPv4 */
	bool ipv6;
	bool refused;
};

/* For a specific address, the mapping that takes its packets decides. */
INLINE bool reserve_has_address(const struct reserve_request *request)
{
	const __u8 *address = request->asked.address.bytes;
	const struct portmap *portmap;

	if (address_is_group(address) || address_is_ipv6_link_local(address))
		return false;
	portmap = portmap_find(address, request->asked.port, request->asked.protocol);
	return portmap && portmap->reserved_on_host &&
	       (portmap->localhost || !address_is_loopback(address)) &&
	       !portmap_is_excluded(portmap, address);
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

INLINE bool reserve_has_any(const struct reserve_request *request, bool ipv4)
{
	const struct portmap *portmap =
		portmap_find_any(ipv4, request->asked.port, request->asked.protocol);

	return portmap && portmap->reserved_on_host;
}

/* For any address, one reserved address is enough. Where that is a single one, it takes a walk
 * through all mappings, which costs milliseconds: only for ports that are mapped so, or were
 * until the last `repair`. */
INLINE bool reserve_refuses(struct reserve_request *request)
{
	__u16 port = request->asked.port;

	if (!port || !portmap_is_published(port))
		return false;
	if (!request->any)
		return reserve_has_address(request);
	if ((request->ipv4 && reserve_has_any(request, true)) ||
	    (request->ipv6 && reserve_has_any(request, false)))
		return true;
	if (portmap_is_at_addresses(port))
		bpf_for_each_map_elem(&portmaps, reserve_compare, request, 0);
	return request->refused;
}

/* from->name4, or from->name6 in words: the kernel allows only single loads from the context. */
#define READ_ADDRESS(address, ipv4, from, name) \
	do { \
		__u32 *words = (__u32 *)(address).bytes; \
		if (ipv4) { \
			address_from_ipv4((address).bytes, (from)->name##4); \
			break; \
		} \
		words[0] = (from)->name##6 [0]; \
		words[1] = (from)->name##6 [1]; \
		words[2] = (from)->name##6 [2]; \
		words[3] = (from)->name##6 [3]; \
	} while (0)

/* The two programs of a hook. Each may read only its own family from the context. */
#define PROGRAMS(hook) \
	SEC("cgroup/" #hook "4") \
	int hook##4(struct bpf_sock_addr * ctx) \
	{ \
		return on_##hook(ctx, true); \
	} \
	SEC("cgroup/" #hook "6") \
	int hook##6(struct bpf_sock_addr * ctx) \
	{ \
		return on_##hook(ctx, false); \
	}

INLINE bool read_peer(struct bpf_sock_addr *ctx, bool ipv4, struct socket_peer *peer)
{
	__builtin_memset(peer, 0, sizeof(*peer));
	if (!socket_has_ports(ctx->protocol) || !socket_is_of_host(ctx))
		return false;
	peer->port = bpf_ntohs(ctx->user_port);
	peer->protocol = ctx->protocol;
	READ_ADDRESS(peer->address, ipv4, ctx, user_ip);
	return true;
}

INLINE void write_peer(struct bpf_sock_addr *ctx, bool ipv4, const struct socket_peer *peer)
{
	const __u32 *words = (const __u32 *)peer->address.bytes;

	ctx->user_port = bpf_htons(peer->port);
	if (ipv4) {
		ctx->user_ip4 = words[3];
		return;
	}
	ctx->user_ip6[0] = words[0];
	ctx->user_ip6[1] = words[1];
	ctx->user_ip6[2] = words[2];
	ctx->user_ip6[3] = words[3];
}

/* Also to a v4-mapped one. (src_ip4 of an IPv6 socket is always 127.0.0.6.) */
INLINE bool is_bound_to_loopback(struct bpf_sock_addr *ctx, bool ipv4)
{
	struct bpf_sock *sk = socket_of(ctx);
	struct address source;

	if (!sk)
		return false;
	READ_ADDRESS(source, ipv4, sk, src_ip);
	return address_is_loopback(source.bytes);
}

INLINE int on_connect(struct bpf_sock_addr *ctx, bool ipv4)
{
	struct socket_peer peer;

	if (ctx->protocol == PROTOCOL_UDP || !read_peer(ctx, ipv4, &peer))
		return ALLOW;
	socket_name_loopback(&peer.address);
	if (socket_choose(ctx, &peer, is_bound_to_loopback(ctx, ipv4))) {
		count(local_connect);
		write_peer(ctx, ipv4, &peer);
	}
	return ALLOW;
}

/* A connected socket sends to its peer, by sendto(2), or by send(2) of an IPv6 socket with an IPv4
 * peer, which runs sendmsg4: only that one can answer it. */
INLINE bool is_connected(struct bpf_sock_addr *ctx)
{
	struct bpf_sock *sk = socket_of(ctx);

	return sk && sk->state == BPF_TCP_ESTABLISHED;
}

INLINE int on_sendmsg(struct bpf_sock_addr *ctx, bool ipv4)
{
	struct socket_peer peer;
	struct address source;

	READ_ADDRESS(source, ipv4, ctx, msg_src_ip);
	if (is_connected(ctx) || !read_peer(ctx, ipv4, &peer))
		return ALLOW;
	socket_name_loopback(&peer.address);
	if (socket_choose(ctx, &peer, address_is_loopback(source.bytes))) {
		count(local_send);
		write_peer(ctx, ipv4, &peer);
	}
	return ALLOW;
}

INLINE int on_recvmsg(struct bpf_sock_addr *ctx, bool ipv4)
{
	struct socket_peer sender, asked;

	if (is_connected(ctx) || !read_peer(ctx, ipv4, &sender))
		return ALLOW;
	if (socket_asked(ctx, &sender, &asked))
		write_peer(ctx, ipv4, &asked);
	else
		socket_note_sender(ctx, &sender);
	return ALLOW;
}

INLINE int on_getpeername(struct bpf_sock_addr *ctx, bool ipv4)
{
	struct socket_peer peer, asked;

	if (read_peer(ctx, ipv4, &peer) && socket_asked(ctx, &peer, &asked))
		write_peer(ctx, ipv4, &asked);
	return ALLOW;
}

/* The only member of the kernel's struct that is used here. */
struct sock_common___ipv6 {
	unsigned char skc_ipv6only : 1;
} __attribute__((preserve_access_index));

INLINE bool is_ipv6_only(struct bpf_sock_addr *ctx)
{
	const struct sock_common___ipv6 *sk;
	struct bpf_sock *own = socket_of(ctx);

	if (!own)
		return false;
	if (ctx->protocol == PROTOCOL_TCP)
		sk = (const void *)bpf_skc_to_tcp6_sock(own);
	else
		sk = (const void *)bpf_skc_to_udp6_sock(own);
	return sk && BPF_CORE_READ_BITFIELD(sk, skc_ipv6only);
}

INLINE int on_bind(struct bpf_sock_addr *ctx, bool ipv4)
{
	struct reserve_request request = {};
	const __u8 *address = request.asked.address.bytes;

	if (!read_peer(ctx, ipv4, &request.asked))
		return ALLOW;
	if (ipv4 || address_is_ipv4(address)) {
		request.ipv4 = true;
		request.any = !address_to_ipv4(address);
	} else {
		request.ipv6 = true;
		request.any = address_is_unset(address);
		request.ipv4 = request.any && !is_ipv6_only(ctx);
	}
	if (!reserve_refuses(&request))
		return ALLOW;
	count(bind_refused);
	if (can_give_reason)
		bpf_set_retval(-EADDRINUSE);
	return REFUSE;
}

PROGRAMS(connect)
PROGRAMS(sendmsg)
PROGRAMS(recvmsg)
PROGRAMS(getpeername)
PROGRAMS(bind)

char LICENSE[] SEC("license") = "Dual BSD/GPL";
