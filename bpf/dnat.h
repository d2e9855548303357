/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* dnat.h - finds the connection of a packet from the outside, and begins those through a mapped
 * port. */
#ifndef BPF_PORTMAP_DNAT_H
#define BPF_PORTMAP_DNAT_H

#include "connection_use.h"
#include "endpoint.h"
#include "policy.h"
#include "portmap.h"
#include "route.h"
#include "snat.h"

/* False: no alias has this destination. An echo identifier is no port, and marks none. */
INLINE bool alias_is_likely(const struct tuple *tuple)
{
	return !packet_protocol_has_ports(tuple->protocol) ||
	       noticed_external(tuple->destination, tuple->destination_port);
}

/* False: no mapping, alias or container has this destination. Asked first of every packet: most are
 * none of ours. */
INLINE bool inwards_concerns(const struct tuple *tuple)
{
	return portmap_is_published(tuple->destination_port) || alias_is_likely(tuple) ||
	       endpoint_is_likely(tuple->destination);
}

/* Identity and outside are the same but for what the alias says. */
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

INLINE bool inwards_by_key(const struct tuple *tuple, struct found *found)
{
	if (found_look_up(found) && connection_has_external(found->connection, tuple))
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

/* The mapping of the destination, or NULL. A connection stays with its container where a mapping of
 * the exact address has come since. */
INLINE struct portmap *inwards_find_mapped(const struct tuple *tuple, struct found *found)
{
	struct portmap *exact, *any;

	if (!packet_protocol_has_ports(tuple->protocol) ||
	    !portmap_is_published(tuple->destination_port))
		return NULL;
	exact = portmap_find_at(tuple->destination, tuple->destination_port, tuple->protocol);
	if (exact && !found->connection && inwards_by_mapping(tuple, exact, found))
		return exact;
	any = portmap_find_any(address_is_ipv4(tuple->destination), tuple->destination_port,
			       tuple->protocol);
	if (any && !found->connection)
		inwards_by_mapping(tuple, any, found);
	return exact ?: any;
}

/* Finds the connection; returns the mapping of the destination, where that may matter. */
INLINE struct portmap *inwards_find(const struct tuple *tuple, struct found *found)
{
	struct portmap *mapping;

	if (!found_prepare(found, INWARDS))
		return NULL;
	if (inwards_by_alias(tuple, found) && connection_has_owner(found->connection))
		return NULL;
	mapping = inwards_find_mapped(tuple, found);
	if (!found->connection && endpoint_is_likely(tuple->destination)) {
		connection_key_of(tuple, INWARDS, found->key);
		inwards_by_key(tuple, found);
	}
	return mapping;
}

/* The same for whoever comes by seldom: the identity is left in scratch->found. False: there is no
 * connection. */
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

/* Where the tuple behind the translation is another connection's (the client reached the container
 * another way with the same source port), the source port moves, and an alias leads there. */
GLOBAL_FUNCTION enum claim dnat_move_port(void)
{
	struct draft *draft = draft_get();
	enum claim claim = CLAIM_TAKEN;

	if (!draft)
		return CLAIM_FULL;
	for (int i = 0; i < MOVED_PORT_TRIES && claim == CLAIM_TAKEN; i++) {
		draft->key.outside_port =
			MOVED_PORT_FIRST + bpf_get_prandom_u32() % (65536 - MOVED_PORT_FIRST);
		claim = connection_create();
	}
	if (claim != CLAIM_OK)
		return claim;
	if (!snat_take_tuple(draft, TAKE_FREE)) {
		connection_end(&draft->key, draft->connection.id);
		return CLAIM_TAKEN;
	}
	count(flow_moved_port);
	return CLAIM_OK;
}

/* Another CPU may have begun the very same connection meanwhile. */
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

/* Begins a connection from the outside. A container that reaches its own port from that very port
 * is moved: the tuple would be its own reply. */
INLINE enum claim dnat_create(const struct draft *draft)
{
	const struct connection_key *key = &draft->key;
	enum claim claim = CLAIM_TAKEN;

	if (!address_equal(key->inside, key->outside) || key->inside_port != key->outside_port)
		claim = connection_create();
	if (claim != CLAIM_TAKEN)
		return claim;
	return dnat_was_faster(draft) ? CLAIM_OK : dnat_move_port();
}

/* No connection, but for a socket of the host's own that is connected to the sender; else TCP in
 * mid-connection is a mapped one that has lost its record. */
INLINE bool dnat_belongs_to_host(struct __sk_buff *skb, const struct packet *packet)
{
	return !packet_begins_tcp(packet) && socket_find(skb, &packet->tuple) >= SOCKET_LINGERING;
}

GLOBAL_FUNCTION enum verdict dnat_begin(struct __sk_buff *skb, const struct packet *packet,
					struct portmap *mapping, struct translation *translation)
{
	enum verdict verdict;
	struct draft *draft;

	if (!packet || !mapping || !translation || dnat_belongs_to_host(skb, packet))
		return VERDICT_PASS;
	if (!policy_admits(&mapping->owner, packet->sender))
		return drop(source_range);
	draft = draft_begin(&packet->tuple, INWARDS, &mapping->owner, FLOW_MAPPING, 0);
	if (!draft)
		return VERDICT_PASS;
	if (!share_left_to(&draft->key, &draft->connection))
		return verdict_of_claim(CLAIM_LIMITED);
	if (policy_masquerades_all(&mapping->owner))
		noticed_mark(masquerade_all, 0);
	address_copy(draft->key.inside, mapping->container_address);
	draft->key.inside_port = mapping->container_port;
	verdict = verdict_of_claim(dnat_create(draft));
	if (verdict != VERDICT_TRANSLATE)
		return verdict;
	translation_inwards(&draft->key, translation);
	__sync_fetch_and_add(&mapping->flows, 1);
	count(flow_mapping);
	return verdict;
}

#endif
