/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * seal.h - how the hooks behind the IP stack know that a packet with a container's address is from
 * that container.
 *
 * At the container's veth its packet gets a seal: skb->hash becomes a hash of its source with the
 * host's secret. Root of another container can set skb->hash, too, and it stays with a packet that
 * crosses a veth, but he does not know the secret. It also stays through bridge, IP stack,
 * reassembly and fragmentation, and when a destination is translated. What the kernel distributes
 * by skb->hash (RPS, ECMP) still has one value for each socket of a container, and all fragments of
 * a datagram have it (fragment_follow()).
 *
 * No other container may see such a seal: to_uplink and to_container take it away. A frame that the
 * bridge may switch to another port gets one that is good for the same destination only. So does
 * what goes to the MAC that the bridge had before, or to a gateway behind a port. There from_uplink
 * exchanges it for one without a destination, since the stack may translate that. Only packets with
 * our tc_index are asked about, so that others cost nothing.
 */
#pragma once

#include "packet.h"
#include "siphash.h"
#include "tc_index.h"

#define SEAL_DOMAIN 0x7365616cULL /* other hashes with this secret are not seals */

/* translation: inwards, or NULL. enters_stack: good for any destination. */
GLOBAL_FUNCTION __u32 seal_of(const struct packet *packet, const struct translation *translation,
			      bool enters_stack)
{
	struct sip_state state;
	__u64 ports, low, high;

	if (!packet)
		return 0;
	ports = (__u64)packet->tuple.destination_port << 16 | packet->tuple.source_port;
	if (packet->fragment == LATER_FRAGMENT && !enters_stack)
		ports = 0; /* who exchanges the seal does not know the first one's port */
	low = address_halves(packet->tuple.destination)[0];
	high = address_halves(packet->tuple.destination)[1];
	if (translation) {
		ports = (__u64)translation->port << 16 | translation->peer_port;
		low = address_halves(translation->address)[0];
		high = address_halves(translation->address)[1];
	}
	state = sip_begin(SINGLE(meta)->port_seed ^ SEAL_DOMAIN);
	for (int i = 0; i < 2; i++)
		sip_take(&state, address_halves(packet->sender)[i]);
	sip_take(&state, (enters_stack ? (__u16)ports : ports) << 32 | packet->tuple.protocol);
	if (!enters_stack) {
		sip_take(&state, low);
		sip_take(&state, high);
	}
	return sip_end(&state);
}

INLINE void seal_set(struct __sk_buff *skb, const struct packet *packet,
		     const struct translation *translation, bool enters_stack)
{
	bpf_set_hash(skb, seal_of(packet, translation, enters_stack));
	if (!enters_stack)
		tc_index_set(skb, 0);
}

/* A frame that a bridge has switched enters the IP stack. */
INLINE void seal_exchange(struct __sk_buff *skb, const struct packet *packet)
{
	if (skb->hash == seal_of(packet, NULL, false))
		seal_set(skb, packet, NULL, true);
}

/* translation: to what it had before another NAT changed it, or NULL */
INLINE bool seal_is_right(const struct packet *packet, const struct translation *translation)
{
	return packet->seal == seal_of(packet, translation, true) ||
	       packet->seal == seal_of(packet, translation, false);
}

/* The kernel computes a hash of its own where one is asked for, as to choose a device's queue. */
INLINE void seal_take_away(struct __sk_buff *skb)
{
	bpf_set_hash_invalid(skb);
}
