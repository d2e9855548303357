/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * socket.bpf.c - the entry programs at the host's own sockets.
 *
 * A process of the host that asks for a mapped port, at a loopback address or at any other of the
 * host, gets a socket to the container itself: nothing has to be rewritten in its packets, no
 * loopback address is ever seen outside lo (net.ipv4.conf.*.route_localnet stays 0: CVE-2020-8558),
 * and the container sees the host's address towards it.
 *
 *   program          runs at                                        does
 *   connect4, 6      connect(2), before there is a route            asked -> container
 *   sendmsg4, 6      sendto(2), sendmsg(2) of unconnected UDP       asked -> container
 *   recvmsg4, 6      recvfrom(2), recvmsg(2) of UDP                 container -> asked
 *   getpeername4, 6  getpeername(2)                                 container -> asked
 *   sock_release     the last close(2)                              forgets what was asked
 *   bind4, 6         bind(2), where somebody reserves ports         refuses
 *
 * An IPv6 socket that asks for an IPv4 address: connect, receive and getpeername run the
 * programs of IPv6 with a mapped address, sendto runs sendmsg4.
 *
 * They hang at the root of cgroup2 and see the sockets of every process, those of containers too:
 * what counts is the network namespace. bind4 and bind6 alone ever refuse anything.
 */
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "socket.h"

#define REFUSE 0
#define ALLOW 1
#define EADDRINUSE 98

/* Whether bind(2) can say why it fails (bpf_set_retval, at this hook since 6.1); else EPERM. */
const volatile bool can_give_reason = false;

/* from->name4 or, in words, from->name6. The kernel takes loads from the context one by one only.
 */
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

/* The programs of a hook, which differ in the family that they may read from their context. */
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

/* Also to an IPv4 one, mapped. (src_ip4 of an IPv6 socket is 127.0.0.6 whatever it is.) */
INLINE bool is_bound_to_loopback(struct bpf_sock_addr *ctx, bool ipv4)
{
	struct bpf_sock *sk = ctx->sk;
	struct address source;

	if (!sk)
		return false;
	READ_ADDRESS(source, ipv4, sk, src_ip);
	return address_is_loopback(source.bytes);
}

INLINE int on_connect(struct bpf_sock_addr *ctx, bool ipv4)
{
	struct socket_peer peer;

	if (!read_peer(ctx, ipv4, &peer))
		return ALLOW;
	socket_name_loopback(&peer.address);
	socket_notice(&peer);
	if (socket_choose(ctx, &peer, is_bound_to_loopback(ctx, ipv4))) {
		count(local_connect);
		write_peer(ctx, ipv4, &peer);
	}
	return ALLOW;
}

/* send(2) of an IPv6 socket that is connected to an IPv4 address runs sendmsg4 too. */
INLINE bool is_connected_there4(struct bpf_sock_addr *ctx)
{
	struct bpf_sock *sk = ctx->sk;

	return sk && sk->state == BPF_TCP_ESTABLISHED && sk->dst_ip4 == ctx->user_ip4 &&
	       sk->dst_port == (__be16)ctx->user_port;
}

INLINE int on_sendmsg(struct bpf_sock_addr *ctx, bool ipv4)
{
	struct socket_peer peer;
	struct address source;

	READ_ADDRESS(source, ipv4, ctx, msg_src_ip);
	if ((ipv4 && is_connected_there4(ctx)) || !read_peer(ctx, ipv4, &peer))
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
	struct socket_peer sender;

	if (!read_peer(ctx, ipv4, &sender))
		return ALLOW;
	if (socket_recall(ctx, &sender))
		write_peer(ctx, ipv4, &sender);
	else
		socket_note_sender(ctx, &sender);
	return ALLOW;
}

INLINE int on_getpeername(struct bpf_sock_addr *ctx, bool ipv4)
{
	struct socket_peer peer;

	if (read_peer(ctx, ipv4, &peer) && socket_recall(ctx, &peer))
		write_peer(ctx, ipv4, &peer);
	return ALLOW;
}

/* The kernel's own, of which this is all that counts here. */
struct sock_common___ipv6 {
	unsigned char skc_ipv6only : 1;
} __attribute__((preserve_access_index));

INLINE bool is_ipv6_only(struct bpf_sock_addr *ctx)
{
	const struct sock_common___ipv6 *sk;

	if (!ctx->sk)
		return false;
	if (ctx->protocol == PROTOCOL_TCP)
		sk = (const void *)bpf_skc_to_tcp6_sock(ctx->sk);
	else
		sk = (const void *)bpf_skc_to_udp6_sock(ctx->sk);
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

/* Connected ones alone: what others asked for is pushed out of the map in time. */
INLINE bool read_connected_peer(struct bpf_sock *sk, struct socket_peer *peer)
{
	__builtin_memset(peer, 0, sizeof(*peer));
	peer->port = bpf_ntohs(sk->dst_port);
	peer->protocol = sk->protocol;
	if (!peer->port || !socket_has_ports(sk->protocol) || !socket_is_of_host(sk))
		return false;
	READ_ADDRESS(peer->address, sk->family == AF_INET, sk, dst_ip);
	return true;
}

SEC("cgroup/sock_release")
int sock_release(struct bpf_sock *sk)
{
	struct socket_peer peer;

	if (read_connected_peer(sk, &peer))
		socket_forget(sk, &peer);
	return ALLOW;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
