/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * icmp_error.h - decides about ICMP errors, and which of their senders are trusted.
 *
 * An error's tuple is that of a reply to the quoted packet (parse.h). It begins no connection and
 * keeps none alive (RFC 5508 4). Anyone can forge what it quotes. So an error from outside goes
 * through the IP stack, whose firewall decides about it, and one from a container counts only if
 * that container may have got the packet in question.
 */
#pragma once

#include "egress.h"

/* Returns whether the error's sender may be a router on the way of the inside's packets: they leave
 * through ifindex to an address that is no container's. */
INLINE bool error_is_of_way(const struct packet *packet, const struct connection *connection,
			    __u32 ifindex)
{
	return connection_leaves_by(connection) == ifindex && !endpoint_find(packet->tuple.source);
}

/* Returns whether another container's connection would translate this container's error, but must
 * not. It may if the quoted packet was sent to the error's sender, or that is a router on the way.
 * owner: of the veth where the error arrived; ifindex: its ingress interface for routing. */
GLOBAL_FUNCTION bool error_is_foreign(const struct packet *packet, const struct owner *owner,
				      __u32 ifindex)
{
	struct scratch *scratch = scratch_get();
	struct translation translation;
	struct connection *connection;
	struct tuple tuple;

	if (!packet || !owner)
		return true;
	if (address_equal(packet->tuple.source, packet->sender))
		return false;
	__builtin_memcpy(&tuple, &packet->tuple, sizeof(tuple));
	connection = connection_confirmed(&tuple, OUTWARDS);
	if (connection) {
		translation_outwards(connection, &translation);
	} else {
		tuple.direction = DIRECTION_IN;
		if (inwards_find_key(&tuple))
			connection = connection_find(&scratch->found);
		translation_inwards(&scratch->found, &translation);
	}
	if (!connection || owners_are_of_one_container(&connection->owner, owner))
		return false;
	return translation_changes(&translation, &tuple) &&
	       !(tuple.direction == DIRECTION_IN && error_is_of_way(packet, connection, ifindex));
}

/* Decides about an error about a packet that left translated. A container's own about its owner's
 * connections may skip the stack. */
INLINE enum verdict error_decide_inwards(struct flow_context *flow)
{
	const struct owner *container = &flow->arrival->owner;
	struct found *found = &flow->found;

	found_prepare(found, INWARDS);
	if (!inwards_find_key(&flow->packet->tuple) || !found_look_up(found))
		return VERDICT_PASS;
	translation_inwards(found->key, flow->translation);
	if (container->slot && owner_equal(&found->connection->owner, container))
		offload_use_path(flow);
	return VERDICT_TRANSLATE;
}
