/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * renewal.h - what was found out about a path when it was renewed, for all other connections that
 * would ask the same in this second: all to one container, and those from it to one address (a
 * resolver, a proxy) by one of its next hops. Where rules of the host's routing look at ports or,
 * inwards, at the source, each asks for itself.
 *
 * A memo (memo.h) goes further: while neither the host's routes nor the next hop's MAC have
 * changed, an answer is right for all connections that go by that next hop.
 */
#pragma once

#include "offload_decide.h"

struct renewal_question {
	__u8 source[16]; /* inwards not set */
	__u8 destination[16];
	struct owner owner;
	__u32 ifindex; /* where the packets enter the IP stack */
	__u32 device;  /* where they are handled */
	__u32 second;  /* CLOCK_MONOTONIC */
	__u32 out_ifindex;
	__u8 out_mac[6]; /* the next hop that the connection has there */
	__u8 way;
	enum protocol protocol;
} __attribute__((aligned(8)));

struct renewal {
	struct renewal_question question;
	struct next_hop next_hop;
	struct basis basis;
	enum flow_path path;
	__u8 reserved[7];
} __attribute__((aligned(8)));

#define RENEWALS 128

ARRAY_OF(renewals, BPF_MAP_TYPE_PERCPU_ARRAY, struct renewal, RENEWALS);

INLINE void renewal_ask(const struct connection_key *key, const struct connection *connection,
			enum way way, struct renewal_question *question)
{
	if (way == OUTWARDS)
		address_copy(question->source, offload_source(key, connection, way));
	address_copy(question->destination, way == INWARDS ? key->inside : key->outside);
	question->owner = connection->owner;
	question->out_ifindex = connection->next_hop[way].ifindex;
	__builtin_memcpy(question->out_mac, connection->next_hop[way].destination, ETH_ALEN);
	question->second = clock_second();
	question->way = way;
	question->protocol = key->protocol;
}

/* Returns the place of the question's answer, or of another's. */
INLINE struct renewal *renewal_place(const struct renewal_question *question)
{
	__u32 place = hash_words(question, sizeof(*question)) % RENEWALS;

	return bpf_map_lookup_elem(&renewals, &place);
}

/* Gives the connection the answer that another one has got in this second. False: there is none. */
GLOBAL_FUNCTION bool renewal_use(struct __sk_buff *skb, const struct connection_key *key,
				 struct connection *connection, enum way way, __u32 ifindex)
{
	struct renewal_question question = {.ifindex = ifindex, .device = skb->ifindex};
	const struct renewal *renewal;
	struct next_hop *next_hop;

	if (!key || !connection)
		return false;
	way &= 1;
	renewal_ask(key, connection, way, &question);
	renewal = renewal_place(&question);
	if (!renewal || !words_equal(&renewal->question, &question, sizeof(question)))
		return false;
	next_hop = &connection->next_hop[way];
	__builtin_memcpy(next_hop, &renewal->next_hop, sizeof(*next_hop));
	next_hop->asked = question.second;
	connection->path[way] = renewal->path;
	__builtin_memcpy(&scratch_get()->basis, &renewal->basis, sizeof(renewal->basis));
	return true;
}

/* Keeps what routing has just answered. A neighbour that was not resolved is asked for again. */
GLOBAL_FUNCTION int renewal_share(struct __sk_buff *skb, const struct connection_key *key,
				  const struct connection *connection, enum way way, __u32 ifindex)
{
	struct renewal_question question = {.ifindex = ifindex, .device = skb->ifindex};
	struct scratch *scratch = scratch_get();
	struct renewal *renewal;

	if (!key || !connection)
		return 0;
	way &= 1;
	if (!connection->next_hop[way].ifindex || !mac_is_known(scratch->query.dmac) ||
	    !scratch->basis.routes)
		return 0;
	renewal_ask(key, connection, way, &question);
	renewal = renewal_place(&question);
	if (!renewal)
		return 0;
	__builtin_memcpy(&renewal->question, &question, sizeof(question));
	__builtin_memcpy(&renewal->next_hop, &connection->next_hop[way], sizeof(renewal->next_hop));
	__builtin_memcpy(&renewal->basis, &scratch->basis, sizeof(renewal->basis));
	renewal->path = connection->path[way];
	return 0;
}
