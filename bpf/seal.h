/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * seal.h - how the hooks behind the IP stack know that a packet with a container's address is from
 * that container.
 *
 * At the container's veth its packet gets a seal: skb->hash becomes a hash of its source with the
 * host's secret. Root of another container can set skb->hash, too, and it stays with a packet that
 * crosses a veth, but he does not know the secret. It also stays through bridge, IP stack,
 * reassembly and fragmentation, and when a destination is translated. What the kernel distributes
 * by skb->hash (RPS, ECMP) still has one value for each socket of a container.
 *
 * No other container may see a seal: only what goes into the IP stack gets one, and to_uplink and
 * to_container take it away.
 */
#pragma once

#include "siphash.h"
#include "packet.h"

#define SEAL_DOMAIN 0x7365616cULL /* other hashes with this secret are not seals */

GLOBAL_FUNCTION __u32 seal_of(const struct packet *packet, __u16 source_port)
{
	struct sip_state state;

	if (!packet)
		return 0;
	state = sip_begin(SINGLE(meta)->port_seed ^ SEAL_DOMAIN);
	for (int i = 0; i < 2; i++)
		sip_take(&state, address_halves(packet->sender)[i]);
	sip_take(&state, (__u64)source_port << 32 | packet->tuple.protocol);
	return sip_end(&state);
}

/* source_port: with which it enters the IP stack. */
INLINE void seal_set(struct __sk_buff *skb, const struct packet *packet, __u16 source_port)
{
	bpf_set_hash(skb, seal_of(packet, source_port));
}

INLINE bool seal_is_right(const struct packet *packet)
{
	return packet->seal == seal_of(packet, packet->tuple.source_port);
}

/* Keeps a value for each flow in its place: network devices choose a queue by it. */
INLINE void seal_take_away(struct __sk_buff *skb)
{
	bpf_set_hash(skb, hash_mix(SINGLE(meta)->port_seed, skb->hash));
}
