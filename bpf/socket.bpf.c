/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * socket.bpf.c - the entry programs at the host's own sockets.
 *
 * A process of the host that asks for a mapped port, at a loopback address or at any other
 * of the host, gets a socket to the container itself: nothing has to be rewritten in its
 * packets, no loopback address is ever seen outside lo (net.ipv4.conf.*.route_localnet
 * stays 0: CVE-2020-8558), and the container sees the host's address towards it.
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
 * They hang at the root of cgroup2 and see the sockets of every process, those of
 * containers too: what counts is the network namespace. bind4 and bind6 alone ever refuse
 * anything.
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

/* The kernel takes loads from the context one by one only. */
#define READ_ADDRESS6(address, field) \
	do { \
		__u32 *words = (__u32 *)(address); \
		words[0] = (field)[0]; \
		words[1] = (field)[1]; \
		words[2] = (field)[2]; \
		words[3] = (field)[3]; \
	} while (0)

/* All but the address. */
INLINE bool read_peer(struct bpf_sock_addr *ctx, struct socket_peer *peer)
{
	__builtin_memset(peer, 0, sizeof(*peer));
	if (!socket_has_ports(ctx->protocol) || !socket_is_of_host(ctx))
		return false;
	peer->port = bpf_ntohs(ctx->user_port);
	peer->protocol = ctx->protocol;
	return true;
}

INLINE bool read_peer4(struct bpf_sock_addr *ctx, struct socket_peer *peer)
{
	if (!read_peer(ctx, peer))
		return false;
	address_from_ipv4(peer->address.bytes, ctx->user_ip4);
	return true;
}

INLINE bool read_peer6(struct bpf_sock_addr *ctx, struct socket_peer *peer)
{
	if (!read_peer(ctx, peer))
		return false;
	READ_ADDRESS6(peer->address.bytes, ctx->user_ip6);
	return true;
}

INLINE void write_peer4(struct bpf_sock_addr *ctx, const struct socket_peer *peer)
{
	ctx->user_ip4 = address_to_ipv4(peer->address.bytes);
	ctx->user_port = bpf_htons(peer->port);
}

INLINE void write_peer6(struct bpf_sock_addr *ctx, const struct socket_peer *peer)
{
	const __u32 *words = (const __u32 *)peer->address.bytes;

	ctx->user_ip6[0] = words[0];
	ctx->user_ip6[1] = words[1];
	ctx->user_ip6[2] = words[2];
	ctx->user_ip6[3] = words[3];
	ctx->user_port = bpf_htons(peer->port);
}

/* connect(2): what is asked for is where all that follows goes. */
INLINE bool choose_peer(struct bpf_sock_addr *ctx, struct socket_peer *peer, bool bound_to_loopback)
{
	socket_name_loopback(&peer->address);
	socket_notice(peer);
	if (!socket_choose(ctx, peer, bound_to_loopback))
		return false;
	count(local_connect);
	return true;
}

INLINE bool choose_receiver(struct bpf_sock_addr *ctx, struct socket_peer *peer,
			    bool bound_to_loopback)
{
	socket_name_loopback(&peer->address);
	if (!socket_choose(ctx, peer, bound_to_loopback))
		return false;
	count(local_send);
	return true;
}

INLINE bool is_loopback4(__u32 address)
{
	return (bpf_ntohl(address) >> 24) == 127;
}

/* Also to an IPv4 one, mapped. (src_ip4 of an IPv6 socket is 127.0.0.6 whatever it is.) */
INLINE bool is_bound_to_loopback6(struct bpf_sock_addr *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	struct address source;

	if (!sk)
		return false;
	READ_ADDRESS6(source.bytes, sk->src_ip6);
	return address_is_loopback(source.bytes);
}

SEC("cgroup/connect4")
int connect4(struct bpf_sock_addr *ctx)
{
	struct socket_peer peer;

	if (read_peer4(ctx, &peer) &&
	    choose_peer(ctx, &peer, ctx->sk && is_loopback4(ctx->sk->src_ip4)))
		write_peer4(ctx, &peer);
	return ALLOW;
}

SEC("cgroup/connect6")
int connect6(struct bpf_sock_addr *ctx)
{
	struct socket_peer peer;

	if (read_peer6(ctx, &peer) && choose_peer(ctx, &peer, is_bound_to_loopback6(ctx)))
		write_peer6(ctx, &peer);
	return ALLOW;
}

/* send(2) of an IPv6 socket that is connected to an IPv4 address runs sendmsg4 too. */
INLINE bool is_connected_there4(struct bpf_sock_addr *ctx)
{
	struct bpf_sock *sk = ctx->sk;

	return sk && sk->state == BPF_TCP_ESTABLISHED && sk->dst_ip4 == ctx->user_ip4 &&
	       sk->dst_port == (__be16)ctx->user_port;
}

SEC("cgroup/sendmsg4")
int sendmsg4(struct bpf_sock_addr *ctx)
{
	struct socket_peer peer;

	if (!is_connected_there4(ctx) && read_peer4(ctx, &peer) &&
	    choose_receiver(ctx, &peer, is_loopback4(ctx->msg_src_ip4)))
		write_peer4(ctx, &peer);
	return ALLOW;
}

SEC("cgroup/sendmsg6")
int sendmsg6(struct bpf_sock_addr *ctx)
{
	struct socket_peer peer;
	struct address source;

	READ_ADDRESS6(source.bytes, ctx->msg_src_ip6);
	if (read_peer6(ctx, &peer) &&
	    choose_receiver(ctx, &peer, address_is_loopback(source.bytes)))
		write_peer6(ctx, &peer);
	return ALLOW;
}

INLINE bool recall_sender(struct bpf_sock_addr *ctx, struct socket_peer *sender)
{
	if (socket_recall(ctx, sender))
		return true;
	socket_note_sender(ctx, sender);
	return false;
}

SEC("cgroup/recvmsg4")
int recvmsg4(struct bpf_sock_addr *ctx)
{
	struct socket_peer sender;

	if (read_peer4(ctx, &sender) && recall_sender(ctx, &sender))
		write_peer4(ctx, &sender);
	return ALLOW;
}

SEC("cgroup/recvmsg6")
int recvmsg6(struct bpf_sock_addr *ctx)
{
	struct socket_peer sender;

	if (read_peer6(ctx, &sender) && recall_sender(ctx, &sender))
		write_peer6(ctx, &sender);
	return ALLOW;
}

SEC("cgroup/getpeername4")
int getpeername4(struct bpf_sock_addr *ctx)
{
	struct socket_peer peer;

	if (read_peer4(ctx, &peer) && socket_recall(ctx, &peer))
		write_peer4(ctx, &peer);
	return ALLOW;
}

SEC("cgroup/getpeername6")
int getpeername6(struct bpf_sock_addr *ctx)
{
	struct socket_peer peer;

	if (read_peer6(ctx, &peer) && socket_recall(ctx, &peer))
		write_peer6(ctx, &peer);
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

INLINE int answer_bind(struct reserve_request *request)
{
	if (!reserve_refuses(request))
		return ALLOW;
	count(bind_refused);
	if (can_give_reason)
		bpf_set_retval(-EADDRINUSE);
	return REFUSE;
}

SEC("cgroup/bind4")
int bind4(struct bpf_sock_addr *ctx)
{
	struct reserve_request request = {.ipv4 = true};

	if (!read_peer4(ctx, &request.asked))
		return ALLOW;
	request.any = !ctx->user_ip4;
	return answer_bind(&request);
}

SEC("cgroup/bind6")
int bind6(struct bpf_sock_addr *ctx)
{
	struct reserve_request request = {};

	if (!read_peer6(ctx, &request.asked))
		return ALLOW;
	if (address_is_ipv4(request.asked.address.bytes)) {
		request.ipv4 = true;
		request.any = !address_to_ipv4(request.asked.address.bytes);
	} else {
		request.ipv6 = true;
		request.any = address_is_unset(request.asked.address.bytes);
		request.ipv4 = request.any && !is_ipv6_only(ctx);
	}
	return answer_bind(&request);
}

/* Connected ones alone: what others asked for is pushed out of the map in time. */
INLINE bool read_connected_peer(struct bpf_sock *sk, struct socket_peer *peer)
{
	__builtin_memset(peer, 0, sizeof(*peer));
	peer->port = bpf_ntohs(sk->dst_port);
	peer->protocol = sk->protocol;
	if (!peer->port || !socket_has_ports(sk->protocol) || !socket_is_of_host(sk))
		return false;
	if (sk->family == AF_INET)
		address_from_ipv4(peer->address.bytes, sk->dst_ip4);
	else
		READ_ADDRESS6(peer->address.bytes, sk->dst_ip6);
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
