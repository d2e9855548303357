/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * snat.h - begins connections that leave the IP stack with another source: those of masqueraded
 * containers and, where a container is to see nobody but the host, of who comes to it by a mapping.
 *
 * The port. Free means: the alias was inserted with NOEXIST; the port is not published; no socket
 * of the host would get the replies. The default set keeps clear of the host's own ephemeral ports,
 * because a socket of the host that picks a port later does not ask us. Towards one port of one
 * server the last sixteenth is for containers that have fewer: the others take what connections
 * give up that are closed, dead, or unanswered. Where they find none that is remembered for a
 * second. Who tries again after a failure tries others.
 */
#ifndef BPF_PORTMAP_SNAT_H
#define BPF_PORTMAP_SNAT_H

#include "connection_use.h"
#include "flow_cache.h"
#include "port_choice.h"
#include "portmap.h"
#include "route.h"

#define ONE_WAY_SECONDS 30 /* netfilter's, of UDP that nobody answers */

#define RESERVED_PART 16 /* of the ports, for who has few of them */

/* Which external tuple is taken */
enum take {
	TAKE_FREE,       /* a free one, or a dead connection's */
	TAKE_SPARE,      /* or one that a closed or unanswered connection can do without */
	TAKE_SPARE_ONLY, /* the latter only */
	TAKE_FOR_HOST,   /* or any masqueraded connection's */
};

/* Whether a live connection gives up its external port. A closed one would be remembered for some
 * minutes for late segments, where there are ports to spare (RFC 5382 REQ-5). */
INLINE bool snat_gives_up(const struct connection_key *key, const struct connection *connection,
			  enum take take)
{
	__u32 idle = connection_idle(connection, clock_second()), state = connection->state;

	if (take == TAKE_FREE || connection->kind != FLOW_MASQUERADE)
		return false;
	if (take == TAKE_FOR_HOST)
		return true;
	if (key->protocol == PROTOCOL_TCP)
		return state_is_closed(state) && idle > CLOSED_SECONDS;
	return key->protocol == PROTOCOL_UDP && !(state & STATE_REPLIED) && idle > ONE_WAY_SECONDS;
}

/* Takes the draft's external tuple away from its holder. */
GLOBAL_FUNCTION bool snat_free_tuple(enum take take)
{
	struct scratch *scratch = scratch_get();
	const struct connection_key *external;
	struct connection *holder;
	struct connection_key *key;
	const struct alias *alias;
	__u32 id;

	if (!scratch)
		return false;
	external = &scratch->draft.external;
	key = &scratch->other;
	alias = bpf_map_lookup_elem(&aliases, external);
	if (!alias)
		return true;
	id = alias->id;
	__builtin_memcpy(key, external, sizeof(*key));
	alias_follow(alias, key);
	holder = bpf_map_lookup_elem(&connections, key);
	if (!holder || holder->id != id)
		return (__s32)(clock_second() - alias->made) > ALIAS_SECONDS &&
		       alias_delete(external, id);
	if (connection_lives(key, holder, clock_second())) {
		if (!snat_gives_up(key, holder, take))
			return false;
		if (take == TAKE_FOR_HOST)
			count(flow_displaced);
		else
			count(flow_evicted);
	}
	connection_end(key, id);
	if (take == TAKE_FOR_HOST)
		__sync_fetch_and_add(&memos_era, 1); /* the host's at once */
	return true;
}

/* Gives the draft its external tuple. False: another connection keeps that. */
INLINE bool snat_take_tuple(struct draft *draft, enum take take)
{
	alias_draft(draft);
	return alias_insert() || (snat_free_tuple(take) && alias_insert());
}

/* Would replies be somebody's who has no alias? The port is marked first: a socket that is not
 * found yet sends its packets after that. */
INLINE bool snat_port_has_owner(struct __sk_buff *skb, struct scratch *scratch)
{
	const struct connection_key *external = &scratch->draft.external;
	struct tuple *reply = &scratch->reply;

	if (!packet_protocol_has_ports(external->protocol))
		return false;
	tuple_inwards(external, reply);
	noticed_mark_external(reply->destination, reply->destination_port);
	return portmap_exists(reply) || socket_find(skb, reply) != SOCKET_NONE;
}

/* Makes the draft's alias, if that port is the connection's to take. */
GLOBAL_FUNCTION bool snat_take_port(struct __sk_buff *skb, enum take take)
{
	struct scratch *scratch = scratch_get();
	bool taken;

	if (!scratch)
		return false;
	taken = bpf_map_lookup_elem(&aliases, &scratch->draft.external);
	if (taken ? !snat_free_tuple(take) : take == TAKE_SPARE_ONLY)
		return false;
	return !snat_port_has_owner(skb, scratch) && alias_insert();
}

/* The next port of the order that is to be had, if it is among the next PORT_PLACES_A_ROUND. */
GLOBAL_FUNCTION bool snat_next_port(struct __sk_buff *skb, struct port_order *order,
				    const struct port_set *set)
{
	struct scratch *scratch = scratch_get();
	enum take take;

	if (!scratch || !order || !set)
		return false;
	for (int i = 0; i < PORT_PLACES_A_ROUND && order->next < order->places; i++) {
		scratch->draft.external.inside_port = port_at(order, set, order->next);
		order->next++;
		take = order->share_used                     ? TAKE_SPARE_ONLY
		       : order->next > PORT_PLACES_SCATTERED ? TAKE_SPARE
							     : TAKE_FREE;
		if (snat_take_port(skb, take))
			return true;
	}
	return false;
}

INLINE void snat_count_tries(__u32 tries)
{
	if (tries == 1)
		count(masquerade_tries_1);
	else if (tries <= 4)
		count(masquerade_tries_2_to_4);
	else if (tries <= 16)
		count(masquerade_tries_5_to_16);
	else
		count(masquerade_tries_17_to_64);
}

/* Chooses the draft's external port and makes the alias. */
GLOBAL_FUNCTION bool snat_choose_port(struct __sk_buff *skb, const struct packet *packet)
{
	struct scratch *scratch = scratch_get();
	const struct owner everybody = {};
	struct port_share *mine, *all;
	const struct port_set *set;
	struct port_order *order;
	__u32 now = clock_second(), reserve;
	struct draft *draft;
	bool found = false, small;

	if (!packet || !scratch)
		return false;
	draft = &scratch->draft;
	order = &scratch->order;
	set = port_set_of(&draft->alias.owner);
	mine = port_share_of(&draft->external, &draft->alias.owner);
	all = port_share_of(&draft->external, &everybody);
	if (!set || !mine || !all ||
	    !port_order_of(&packet->tuple, &draft->alias.owner, set, order))
		return false;
	order->start += mine->none_left * 0x9e3779b97f4a7c15ULL;
	small = order->number < SMALL_SET; /* goes to who comes first */
	order->places = small ? order->number + PORT_PLACES_SCATTERED : PORT_PLACES;
	reserve = order->number / RESERVED_PART;
	order->share_used =
		!small && mine->ports > reserve && all->ports + reserve >= order->number;
	if (mine->none_left == now && (small || order->share_used))
		return false;
	for (int i = 0; i < PORT_ROUNDS && !found; i++)
		found = snat_next_port(skb, order, set);
	if (!found) {
		mine->none_left = now; /* and another order, next time */
		return false;
	}
	snat_count_tries(order->next);
	if (draft->external.inside_port != packet->tuple.source_port)
		count(flow_moved_port);
	return true;
}

/* Another CPU may have begun the same connection meanwhile. */
INLINE bool snat_was_faster(const struct connection_key *key, struct translation *translation)
{
	const struct connection *standing = connection_find(key);

	if (!standing || standing->kind != FLOW_MASQUERADE)
		return false;
	translation_outwards(standing, translation);
	return true;
}

/* The draft has the address to leave with; the port is still to be chosen. */
INLINE enum verdict snat_create(struct __sk_buff *skb, const struct packet *packet,
				struct draft *draft, struct translation *translation)
{
	enum claim claim;

	alias_draft(draft);
	if (!snat_choose_port(skb, packet))
		return verdict_of_claim(CLAIM_TAKEN);
	draft->connection.external_port = draft->external.inside_port;
	translation_outwards(&draft->connection, translation);
	claim = connection_create();
	if (claim == CLAIM_OK)
		return VERDICT_TRANSLATE;
	alias_delete(&draft->external, draft->alias.id);
	if (claim == CLAIM_TAKEN && snat_was_faster(&draft->key, translation))
		return VERDICT_TRANSLATE;
	return verdict_of_claim(claim);
}

INLINE bool snat_choose_address(struct __sk_buff *skb, const struct packet *packet, bool outward,
				struct connection *begun)
{
	struct address *chosen = (struct address *)begun->external_address;

	if (outward && policy_source(&begun->owner, packet->tuple.source, chosen))
		return true;
	return route_source(skb, packet, chosen);
}

/* owner: the container's side. outward: the container's own connection, with the host's address;
 * else one to the container by way of a mapping, with the address that the host has there. */
GLOBAL_FUNCTION enum verdict snat_begin(struct __sk_buff *skb, const struct packet *packet,
					const struct owner *owner, bool outward,
					struct translation *translation)
{
	struct connection *begun;
	enum verdict verdict;
	struct draft *draft;

	if (!packet || !owner || !translation)
		return VERDICT_PASS;
	if (packet->echo_reply)
		return drop(untranslatable); /* to a question nobody asked us */
	draft = draft_begin(&packet->tuple, OUTWARDS, owner, FLOW_MASQUERADE,
			    outward ? STATE_CHARGED_OUT : 0);
	if (!draft)
		return VERDICT_PASS;
	begun = &draft->connection;
	if (outward) { /* its first packet has been through the stack */
		begun->leave[OUTWARDS].left_stack = clock_second();
		begun->leave[OUTWARDS].ifindex = skb->ifindex;
	}
	if (!share_left_to(&draft->key, begun))
		return verdict_of_claim(CLAIM_LIMITED);
	if (!snat_choose_address(skb, packet, outward, begun))
		return drop(no_address);
	verdict = snat_create(skb, packet, draft, translation);
	if (verdict == VERDICT_TRANSLATE)
		count(flow_masquerade);
	return verdict;
}

#endif
