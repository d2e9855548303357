/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* dnat.h - finds the connection of an inward packet, and begins those through mapped ports. */
#pragma once

#include "endpoint.h"
#include "replace.h"
#include "snat.h"

/* Returns false where no mapping, alias or container has this destination. Cheap, since it is asked
 * for every packet, and most are not ours. */
INLINE bool inwards_concerns(const struct tuple *tuple)
{
	return portmap_is_published(tuple->destination_port) || alias_is_likely(tuple) ||
	       endpoint_is_likely(tuple->destination);
}

/* The alias gives the parts of the key that translation changes. */
INLINE bool inwards_by_alias(const struct tuple *tuple, struct found *found)
{
	const struct alias *alias;
	__u32 id;

	if (!alias_is_likely(tuple))
		return false;
	connection_key_of(tuple, INWARDS, found->key);
	alias = bpf_map_lookup_elem(&aliases, found->key);
	if (!alias)
		return false;
	id = alias->id;
	alias_follow(alias, found->key);
	if (found_look_up(found) && found->connection->id == id)
		return true;
	found->connection = NULL;
	return false;
}

/* Another connection's tuple may become the same when it is translated. */
INLINE bool inwards_by_key(const struct tuple *tuple, struct found *found)
{
	if (found_look_up(found) &&
	    address_equal(found->connection->external_address, tuple->destination) &&
	    found->connection->external_port == tuple->destination_port &&
	    found->connection->peer_port == tuple->source_port)
		return true;
	found->connection = NULL;
	return false;
}

INLINE bool inwards_by_mapping(const struct tuple *tuple, const struct portmap *mapping,
			       struct found *found)
{
	connection_key_of(tuple, INWARDS, found->key);
	address_copy(found->key->inside, mapping->container_address);
	found->key->inside_port = mapping->container_port;
	return inwards_by_key(tuple, found);
}

/* The same, also where the connection is with a container that was replaced. */
INLINE bool inwards_by_entry(const struct tuple *tuple, struct portmap *mapping,
			     struct found *found)
{
	const struct portmap *before = portmap_before(mapping), *earlier = portmap_earlier(mapping);

	return inwards_by_mapping(tuple, mapping, found) ||
	       (before->owner.slot && inwards_by_mapping(tuple, before, found)) ||
	       (earlier->owner.slot && inwards_by_mapping(tuple, earlier, found));
}

/* Returns the mapping of the destination, or NULL. A connection through a mapping of any address
 * keeps its container if a mapping of the exact address was added since. */
INLINE struct portmap *inwards_find_mapped(const struct tuple *tuple, struct found *found)
{
	struct portmap *exact, *any;

	if (!packet_protocol_has_ports(tuple->protocol) ||
	    !portmap_is_published(tuple->destination_port))
		return NULL;
	exact = portmap_find_exact(tuple->destination, tuple->destination_port, tuple->protocol);
	if (exact && !found->connection && inwards_by_entry(tuple, exact, found))
		return exact;
	any = portmap_find_any(address_is_ipv4(tuple->destination), tuple->destination_port,
			       tuple->protocol);
	if (any && !found->connection)
		inwards_by_entry(tuple, any, found);
	return exact ?: any;
}

/* Finds the connection. Returns the mapping of the destination if the caller may need it. */
INLINE struct portmap *inwards_find(const struct tuple *tuple, struct found *found)
{
	struct portmap *mapping;

	found_prepare(found, INWARDS);
	if (inwards_by_alias(tuple, found) && connection_has_owner(found->connection))
		return NULL;
	mapping = inwards_find_mapped(tuple, found);
	if (!found->connection && endpoint_is_likely(tuple->destination)) {
		connection_key_of(tuple, INWARDS, found->key);
		inwards_by_key(tuple, found);
	}
	return mapping;
}

/* Not inlined, for rare callers. The key is left in scratch->found. */
GLOBAL_FUNCTION bool inwards_find_key(const struct tuple *tuple)
{
	struct found found = {};

	if (!tuple)
		return false;
	inwards_find(tuple, &found);
	return found.connection;
}

#define MOVED_PORT_TRIES 32
#define MOVED_PORT_FIRST 1024

/* If the translated tuple is another connection's (the client reached the container another way
 * with the same source port), the connection gets another source port, and an alias. */
GLOBAL_FUNCTION enum admission draft_move_port(void)
{
	struct draft *draft = draft_get();
	enum admission admission = ADMISSION_TAKEN;

	for (int i = 0; i < MOVED_PORT_TRIES && admission == ADMISSION_TAKEN; i++) {
		draft->key.outside_port =
			MOVED_PORT_FIRST + bpf_get_prandom_u32() % (65536 - MOVED_PORT_FIRST);
		admission = draft_admit();
	}
	if (admission != ADMISSION_OK)
		return admission;
	draft_fill_alias(draft);
	if (!draft_take_tuple(TAKE_IDLE)) {
		connection_end(&draft->key, draft->connection.id);
		return ADMISSION_TAKEN;
	}
	count(flow_moved_port);
	return ADMISSION_OK;
}

/* Another CPU may have begun the same connection meanwhile. */
INLINE bool dnat_was_faster(const struct draft *draft)
{
	const struct connection *wanted = &draft->connection;
	const struct connection *standing = connection_find(&draft->key);

	return standing && !(standing->state & STATE_UNCONFIRMED) &&
	       standing->kind == wanted->kind && owner_equal(&standing->owner, &wanted->owner) &&
	       address_equal(standing->external_address, wanted->external_address) &&
	       standing->external_port == wanted->external_port &&
	       standing->peer_port == wanted->peer_port;
}

/* Begins an inward connection. If a container connects to its own port from the same port, its
 * source port is changed, as the tuple would be that of its own reply. Without ports there is
 * nothing to change. */
INLINE enum admission dnat_create(const struct draft *draft)
{
	const struct connection_key *key = &draft->key;
	enum admission admission = ADMISSION_TAKEN;

	if (!address_equal(key->inside, key->outside) || key->inside_port != key->outside_port)
		admission = draft_admit();
	if (admission != ADMISSION_TAKEN)
		return admission;
	if (dnat_was_faster(draft))
		return ADMISSION_OK;
	return packet_protocol_is_portless(key->protocol) ? ADMISSION_TAKEN : draft_move_port();
}

/* Returns whether a packet of TCP without a record is for a host socket connected to its sender.
 * Otherwise TCP in mid-connection belongs to a mapped connection that has lost its record. A UDP
 * socket says nothing: any user of the host can connect one to a client without a packet. One that
 * has sent is remembered (host.h). */
INLINE bool dnat_belongs_to_host(struct __sk_buff *skb, const struct packet *packet)
{
	return packet->tuple.protocol == PROTOCOL_TCP && !packet_begins_tcp(packet) &&
	       socket_find(skb, &packet->tuple) >= SOCKET_LINGERING;
}

/* Returns false for the end of a connection, a refusal and an answer: forged packets and late ones.
 * The host gets them, as with netfilter's NAT. */
INLINE bool dnat_may_begin(const struct packet *packet)
{
	return packet->tuple.protocol != PROTOCOL_TCP || packet_begins_tcp(packet) ||
	       !(packet->tcp_flags & (TCP_SYN | TCP_RST | TCP_FIN));
}

/* Returns whether it goes through the mapping before. Not inlined, for its stack. */
GLOBAL_FUNCTION bool dnat_waits(struct __sk_buff *skb, const struct portmap *mapping,
				const struct portmap *before, __u32 protocol)
{
	return mapping && before && portmap_waits(skb, mapping, before, protocol);
}

GLOBAL_FUNCTION enum verdict dnat_begin(struct __sk_buff *skb, const struct packet *packet,
					struct portmap *mapping, struct translation *translation)
{
	enum verdict verdict;
	struct draft *draft;

	if (!packet || !mapping || !translation || !dnat_may_begin(packet) ||
	    dnat_belongs_to_host(skb, packet) || conntrack_translates(skb, packet))
		return VERDICT_PASS;
	if (skb->ifindex != LOOPBACK_IFINDEX && !policy_admits(&mapping->owner, packet->sender))
		return drop(source_range);
	draft = draft_begin(packet, INWARDS, &mapping->owner, FLOW_MAPPING, 0);
	if (!share_left_to(&draft->key, &draft->connection))
		return verdict_of_admission(ADMISSION_LIMITED);
	if (policy_masquerades_client(&mapping->owner, packet->sender))
		noticed_mark(masquerade_all, 0);
	if (skb->ifindex == LOOPBACK_IFINDEX)
		draft->connection.in_ifindex = LOOPBACK_IFINDEX;
	address_copy(draft->key.inside, mapping->container_address);
	draft->key.inside_port = mapping->container_port;
	verdict = verdict_of_admission(dnat_create(draft));
	if (verdict != VERDICT_TRANSLATE)
		return verdict;
	translation_inwards(&draft->key, translation);
	__sync_fetch_and_add(&mapping->flows, 1);
	count(flow_mapping);
	return verdict;
}
