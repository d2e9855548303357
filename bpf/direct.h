/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * direct.h - untranslated connections, remembered so that their replies are not masqueraded or
 * dropped: those of clients that reach a container by its own address, and those that a strict
 * container begins with it.
 */
#pragma once

#include "dnat.h"

/* Only the first packet of a connection begins a record: a late one must not leave a record that
 * suppresses masquerade. */
INLINE bool direct_begins(const struct packet *packet)
{
	if (packet->tuple.protocol == PROTOCOL_TCP)
		return packet_begins_tcp(packet);
	return !packet->echo_reply;
}

/* Makes an unconfirmed record (a note). False: the tuple is a connection's already. */
INLINE bool direct_note(const struct packet *packet, const struct owner *owner)
{
	const struct draft *draft =
		draft_begin(packet, INWARDS, owner, FLOW_DIRECT, STATE_UNCONFIRMED);
	struct connection *known = connection_find(&draft->key);

	if (!known) {
		draft_admit();
		return true;
	}
	if (!(known->state & STATE_UNCONFIRMED))
		return false;
	known->last_seen = clock_second();
	return true;
}

/* A client reaches a container by its own address. Only a container's own veth verifies the sender.
 * Elsewhere it makes a note, as a forged packet could choose what is not masqueraded; but if
 * another connection has the replies' tuple, the source port must change now. The container that
 * begins is charged. */
GLOBAL_FUNCTION enum verdict direct_begin(const struct packet *packet,
					  const struct endpoint *endpoint, bool sender_verified,
					  struct translation *translation)
{
	const struct endpoint *charged = endpoint;
	struct draft *draft;
	struct owner owner;
	enum admission admission;

	if (!packet || !endpoint || !translation || !owner_live(&endpoint->owner) ||
	    !direct_begins(packet))
		return VERDICT_PASS;
	if (sender_verified)
		charged = endpoint_find(packet->sender);
	if (!charged)
		return VERDICT_PASS;
	owner = charged->owner;
	if (!sender_verified && direct_note(packet, &owner))
		return VERDICT_PASS;
	draft = draft_begin(packet, INWARDS, &owner, FLOW_DIRECT,
			    sender_verified ? STATE_CHARGED_OUT : 0);
	admission = dnat_create(draft);
	if (admission == ADMISSION_FULL)
		return VERDICT_PASS;
	if (admission == ADMISSION_OK)
		count(flow_direct);
	translation_inwards(&draft->key, translation);
	return verdict_of_admission(admission);
}

INLINE struct connection *direct_find_note(const struct tuple *tuple, enum way way)
{
	struct connection *noted = connection_of(tuple, way);

	return noted && (noted->state & STATE_UNCONFIRMED) ? noted : NULL;
}

/* The packet has left the stack towards a container. False: there is no note of it. */
GLOBAL_FUNCTION bool direct_confirm(const struct packet *packet)
{
	struct connection *noted;

	if (!packet || !direct_begins(packet) || !endpoint_is_likely(packet->tuple.destination))
		return false;
	noted = direct_find_note(&packet->tuple, INWARDS);
	if (!noted)
		return false;
	state_clear(noted, STATE_UNCONFIRMED);
	count(flow_direct);
	return true;
}

/* A RST that the host sends in the container's name: the firewall rejects a client with a note. */
GLOBAL_FUNCTION bool direct_is_refused(const struct packet *packet)
{
	return packet && (packet->tcp_flags & TCP_RST) &&
	       direct_find_note(&packet->tuple, OUTWARDS);
}

/* Remembers a strict container's untranslated packet at an uplink, unless it is a RST, which the
 * host's firewall may have made. */
GLOBAL_FUNCTION int direct_remember_strict(const struct packet *packet,
					   const struct endpoint *endpoint)
{
	if (!packet || !endpoint || packet->echo_reply || (packet->tcp_flags & TCP_RST))
		return 0;
	draft_begin(packet, OUTWARDS, &endpoint->owner, FLOW_DIRECT, STATE_CHARGED_OUT);
	if (draft_admit() == ADMISSION_OK)
		count(flow_direct);
	return 0;
}
