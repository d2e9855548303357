/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * snat.h - begins connections whose source is translated at egress: masqueraded containers' and,
 * with hairpin or masqAll, those of a mapping's clients.
 *
 * A port is free if its alias could be inserted with NOEXIST, it is not published, and neither a
 * socket of the host nor a connection of another NAT would get the replies. A protocol without
 * ports has one external tuple for each server, which the host (host_tunnel.h) or one container
 * has. The default set avoids the host's ephemeral ports, because a host socket that chooses a port
 * later does not ask us.
 *
 * Towards one port of one server, the last sixteenth is reserved for containers with few ports: the
 * others may only replace what an owner that has no fewer has. Where few are free, who needs a port
 * least gives way: a closed or dead connection, UDP that has been idle for seconds, and then what
 * is not assured of an owner with no fewer ports than the newcomer's, as in the ring of half-open
 * ones. After a failure, which is remembered for a second, the next attempt tries other ports.
 *
 * An answer that comes late must not reach another container. So a port changes its owner only
 * when what was asked has had ANSWER_SECONDS for its answer, and an answered one no sooner than in
 * the second after the next. What comes later still does not have the question, the identifier and
 * the client's port that a resolver compares beside it (RFC 5452 9.1); TCP has its numbers.
 */
#pragma once

#include "conntrack.h"
#include "host_tunnel.h"
#include "offload_decide.h"
#include "port_choice.h"
#include "portmap.h"

/* glibc's resolver gives an answer so much time (resolv.conf(5)). */
#define ANSWER_SECONDS 5
/* Under shortage a UDP connection that is not assured, which is one question and its answer, keeps
 * its port for so many idle seconds. RFC 4787 REQ-5 wants two minutes, so that a peer may go on
 * later. REQ-5a lets the application of a well-known destination port have less: DNS, NTP and SNMP
 * ask and are answered. Towards others it has what netfilter gives it, shortage or not; whoever
 * keeps a hole open without getting answers (RFC 8445 11: every 15 s or more) sends again within
 * it. Refusing the newcomer would harm more: its program waits. */
#define SPARED_WELL_KNOWN 10
#define SPARED_UDP 30
#define WELL_KNOWN_END 1024

#define RESERVED_PART 16 /* of the ports, for owners with few of them */

/* Which external tuples may be taken */
enum take {
	TAKE_FREE,   /* a free one, or a dead connection's */
	TAKE_IDLE,   /* or that of a connection idle for hours */
	TAKE_SPARE,  /* or that of a closed connection, or of UDP idle for seconds */
	TAKE_FULLER, /* or one that is not assured, of an owner with no fewer ports */
	/* or that of a masqueraded connection: not assured and without a path, or of a protocol
	 * without ports */
	TAKE_FOR_HOST,
	/* A bit: only of an owner with no fewer ports, none that is free */
	TAKE_REPLACE = 1 << 3,
};

/* Returns whether an owner has no fewer ports towards the draft's server than the draft's. */
GLOBAL_FUNCTION bool draft_finds_fuller(const struct owner *owner)
{
	const struct scratch *scratch = scratch_get();
	const struct port_share *theirs;

	if (!owner)
		return false;
	/* Its own number may have fallen since the order was made: ended connections give up
	 * theirs. */
	if (owner_equal(owner, &scratch->draft.alias.owner))
		return true;
	theirs = port_shares_of(&scratch->draft.external, owner).mine;
	return theirs && (__s32)(theirs->ports - scratch->order.ports) >= 0;
}

/* Returns whether a live connection gives up its external port; an assured one not to the host
 * (host.h). While enough ports are free, a closed one keeps it for minutes, for late segments, and
 * an idle one for days (RFC 5382 REQ-5). Of a protocol without ports one that has got no answer in
 * time gives way however often it repeats its question. */
GLOBAL_FUNCTION bool snat_gives_up(const struct connection_key *key,
				   const struct connection *connection, const struct alias *alias,
				   enum take take)
{
	__u32 idle, state;

	if (!key || !connection || !alias || take == TAKE_FREE ||
	    connection->kind != FLOW_MASQUERADE)
		return false;
	state = connection->state;
	/* One with a path keeps its port: as long as its memo (memo.h) lasts, that would take the
	 * host's answers. */
	if (take == TAKE_FOR_HOST &&
	    ((!(state & STATE_ASSURED) && connection->path[INWARDS] < PATH_CONTAINER) ||
	     packet_protocol_is_portless(key->protocol)))
		return true;
	idle = connection_idle(connection, clock_second());
	if (idle > connection_spared(key, connection))
		return true;
	if (take == TAKE_IDLE)
		return false;
	if (packet_protocol_is_portless(key->protocol))
		return !(state & STATE_REPLIED) &&
		       idle_seconds(clock_second(), alias->made) > ANSWER_SECONDS;
	if (key->protocol == PROTOCOL_TCP && state_is_closed(state))
		return idle > CLOSED_SECONDS;
	if (state & STATE_ASSURED)
		return false;
	if (packet_protocol_is_udp(key->protocol) &&
	    idle > (key->outside_port < WELL_KNOWN_END ? SPARED_WELL_KNOWN : SPARED_UDP))
		return true;
	return take == TAKE_FULLER && idle > (state & STATE_REPLIED ? 1 : ANSWER_SECONDS) &&
	       draft_finds_fuller(&alias->owner);
}

/* Takes the draft's external tuple from the connection that has it. False: none that may be taken;
 * or one of an owner with fewer is free now, which an owner that must replace leaves to others. */
GLOBAL_FUNCTION bool draft_free_tuple(enum take take)
{
	struct scratch *scratch = scratch_get();
	const struct connection_key *external = &scratch->draft.external;
	struct connection_key *key = &scratch->other;
	struct connection *holder;
	const struct alias *alias;
	bool taken;
	__u32 id;

	alias = bpf_map_lookup_elem(&aliases, external);
	if (!alias)
		return !(take & TAKE_REPLACE);
	id = alias->id;
	__builtin_memcpy(key, external, sizeof(*key));
	alias_follow(alias, key);
	holder = bpf_map_lookup_elem(&connections, key);
	if (!holder || holder->id != id)
		return (__s32)(clock_second() - alias->made) > ALIAS_SECONDS &&
		       alias_delete(external, id);
	if (connection_lives(key, holder, clock_second())) {
		if (!snat_gives_up(key, holder, alias, take & ~TAKE_REPLACE))
			return false;
		if (take == TAKE_FOR_HOST)
			count(flow_displaced);
		else
			count(flow_evicted);
	}
	taken = !(take & TAKE_REPLACE) || draft_finds_fuller(&alias->owner);
	connection_end(key, id);
	return taken;
}

/* Inserts first: most tuples are free, and to look is as much work. */
INLINE bool draft_take_tuple(enum take take)
{
	return (!(take & TAKE_REPLACE) && draft_insert_alias()) ||
	       (draft_free_tuple(take) && draft_insert_alias());
}

/* Finds whether replies to the container's own port would go to it by a mapping, too: what a server
 * sends first has the port by which it is reached. */
GLOBAL_FUNCTION int draft_look_for_own_port(void)
{
	struct scratch *scratch = scratch_get();
	const struct draft *draft = &scratch->draft;

	tuple_inwards(&draft->external, &scratch->reply);
	scratch->order.own_published =
		packet_protocol_has_ports(draft->external.protocol) &&
		portmap_leads_to(&scratch->reply, &draft->key, &draft->alias.owner);
	return 0;
}

/* Returns whether replies would go to a mapping. While other ports are free, one that was published
 * since the last `repair` is avoided: its container may be restarting. */
INLINE bool snat_port_is_mapped(const struct tuple *reply, enum take take)
{
	return take == TAKE_FREE ? portmap_is_published(reply->destination_port)
				 : portmap_exists(reply);
}

/* Takes the draft's external port, unless replies would go to a mapping, a host socket or a
 * connection of another NAT. Sockets are searched once the alias is there, so that the packets of
 * one not found yet meet that (host.h). */
GLOBAL_FUNCTION bool draft_take_port(struct __sk_buff *skb, enum take take)
{
	struct scratch *scratch = scratch_get();
	struct draft *draft = &scratch->draft;
	struct tuple *reply = &scratch->reply;

	if (!packet_protocol_has_ports(draft->external.protocol) ||
	    (scratch->order.own_published && draft->external.inside_port == draft->key.inside_port))
		return draft_take_tuple(take);
	tuple_inwards(&draft->external, reply);
	if (snat_port_is_mapped(reply, take) || !draft_take_tuple(take))
		return false;
	if (socket_find(skb, reply) == SOCKET_NONE && !conntrack_find(skb, reply, 0))
		return true;
	alias_delete(&draft->external, draft->alias.id);
	return false;
}

/* Returns which ports may be taken after this many tries. */
INLINE enum take snat_take_at(const struct port_order *order, __u32 tries)
{
	enum take take = tries < PORT_PLACES_SPARE ? TAKE_SPARE : TAKE_FULLER;

	if (order->share_used)
		return take | TAKE_REPLACE;
	return tries < PORT_PLACES_SCATTERED ? TAKE_FREE : take;
}

/* Takes the next port of the order that may be taken, of the next PORT_PLACES_A_ROUND. */
GLOBAL_FUNCTION bool draft_next_port(struct __sk_buff *skb, struct port_order *order,
				     const struct port_set *set)
{
	struct draft *draft = draft_get();
	enum take take;

	if (!order || !set)
		return false;
	for (int i = 0; i < PORT_PLACES_A_ROUND && order->next < order->places; i++) {
		if (order->next == order->keeps_own) /* the first that is not the own one */
			order->start += port_order_start(&draft->key, &draft->alias.owner);
		draft->external.inside_port = port_at(order, set, order->next);
		take = snat_take_at(order, order->next++);
		if (draft_take_port(skb, take))
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
		count(masquerade_tries_over_16);
}

/* Returns false where there are no ports, or none was found in this second. */
GLOBAL_FUNCTION bool draft_order_ports(const struct packet *packet)
{
	struct scratch *scratch = scratch_get();
	struct port_order *order = &scratch->order;
	struct owner *owner = &scratch->draft.alias.owner;
	struct port_shares shares;
	__u32 reserve, none_left;
	bool small;

	shares = port_shares_of(&scratch->draft.external, owner);
	if (!packet || !shares.mine || !shares.all ||
	    !port_order_of(&packet->tuple, owner, port_set_of(owner), order))
		return false;
	none_left = shares.mine->none_left;
	order->ports = shares.mine->ports;
	order->keeps_own |= order->own_published;
	order->start = none_left * 0x9e3779b97f4a7c15ULL;
	small = order->number < SMALL_SET; /* first come, first served */
	order->places = small ? order->number + PORT_PLACES_SPARE : PORT_PLACES;
	reserve = order->number / RESERVED_PART;
	order->share_used = !small && shares.mine->ports > reserve &&
			    shares.all->ports + reserve >= order->number;
	return none_left != clock_second();
}

GLOBAL_FUNCTION bool draft_choose_port(struct __sk_buff *skb, const struct packet *packet)
{
	struct scratch *scratch = scratch_get();
	const struct port_set *set;
	struct port_shares shares;
	bool found = false;

	if (!packet)
		return false;
	if (packet_protocol_is_portless(packet->tuple.protocol))
		return !tunnel_is_of_host(&scratch->draft.external) && draft_take_tuple(TAKE_SPARE);
	if (!draft_order_ports(packet))
		return false;
	set = port_set_of(&scratch->draft.alias.owner);
	for (int i = 0; i < PORT_ROUNDS && !found; i++)
		found = draft_next_port(skb, &scratch->order, set);
	if (!found) {
		shares = port_shares_of(&scratch->draft.external, &scratch->draft.alias.owner);
		if (shares.mine) /* also changes the order of the next attempt */
			shares.mine->none_left = clock_second();
		return false;
	}
	snat_count_tries(scratch->order.next);
	if (scratch->draft.external.inside_port != packet->tuple.source_port)
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

INLINE enum verdict snat_create(struct __sk_buff *skb, const struct packet *packet,
				struct draft *draft, struct translation *translation)
{
	enum admission admission;

	draft_fill_alias(draft);
	draft_look_for_own_port();
	if (!draft_choose_port(skb, packet))
		return verdict_of_admission(ADMISSION_TAKEN);
	draft->connection.external_port = draft->external.inside_port;
	translation_outwards(&draft->connection, translation);
	admission = draft_admit();
	if (admission == ADMISSION_OK)
		return VERDICT_TRANSLATE;
	alias_delete(&draft->external, draft->alias.id);
	if (admission == ADMISSION_TAKEN && snat_was_faster(&draft->key, translation))
		return VERDICT_TRANSLATE;
	return verdict_of_admission(admission);
}

INLINE bool snat_choose_address(struct __sk_buff *skb, const struct packet *packet, bool outward,
				struct connection *begun)
{
	struct address *chosen = (struct address *)begun->external_address;
	__u32 ifindex = skb->ifindex;

	if (outward && policy_source(&begun->owner, packet->tuple.source, chosen))
		return true;
	/* A process of this host sends by lo to a container (loopback.h). */
	if (ifindex == LOOPBACK_IFINDEX)
		ifindex = owner_gateway(&begun->owner);
	return route_source_to_begin(skb, packet, ifindex, chosen);
}

/* Fills the draft, but for its port. VERDICT_TRANSLATE: this connection may begin. */
GLOBAL_FUNCTION enum verdict draft_translate_source(struct __sk_buff *skb,
						    const struct packet *packet,
						    const struct owner *owner, bool outward)
{
	__u32 state = outward ? STATE_CHARGED_OUT : 0;
	struct connection *begun;
	struct draft *draft;

	if (!packet || !owner)
		return VERDICT_PASS;
	/* A late RST gets the host's address, but begins nothing that needs a port for minutes. */
	if (packet->tcp_flags & TCP_RST)
		state |= STATE_AWAITED;
	draft = draft_begin(packet, OUTWARDS, owner, FLOW_MASQUERADE, state);
	begun = &draft->connection;
	begun->uplink = skb->ifindex;
	begun->out_asked = clock_second();
	if (outward) { /* its first packet has passed the stack */
		route_note_way(skb, packet, begun);
		offload_note_outwards(skb, packet, &draft->key, begun, clock_second());
	}
	if (!share_left_to(&draft->key, begun))
		return verdict_of_admission(ADMISSION_LIMITED);
	if (!snat_choose_address(skb, packet, outward, begun))
		return drop(no_address);
	return VERDICT_TRANSLATE;
}

/* owner: the container. outward: a connection that it begins, which gets the host's address; else
 * one to it through a mapping, which gets the host's address towards the container. */
GLOBAL_FUNCTION enum verdict snat_begin(struct __sk_buff *skb, const struct packet *packet,
					const struct owner *owner, bool outward,
					struct translation *translation)
{
	enum verdict verdict;

	if (!packet || !owner || !translation)
		return VERDICT_PASS;
	/* An answer whose request is not known begins nothing. A late RST may: it ends a connection
	 * of the peer, and has its port for CLOSED_SECONDS only. */
	if (packet->echo_reply || (packet->tcp_flags & (TCP_SYN | TCP_ACK)) == (TCP_SYN | TCP_ACK))
		return drop(untranslatable);
	verdict = draft_translate_source(skb, packet, owner, outward);
	if (verdict != VERDICT_TRANSLATE)
		return verdict;
	verdict = snat_create(skb, packet, draft_get(), translation);
	if (verdict == VERDICT_TRANSLATE)
		count(flow_masquerade);
	return verdict;
}
