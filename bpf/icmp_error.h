/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * icmp_error.h - decides about ICMP errors, and which senders of them are believed.
 *
 * An error belongs to the connection that an answer to the quoted packet would take; its tuple is
 * that one, the quoted one turned round (parse_l4.h). It begins no connection and keeps none alive
 * (RFC 5508 4). What it quotes is all that says what it is about, and anybody can quote anything.
 * So one from outside goes through the IP stack, whose firewall decides about it, and one from a
 * container counts only where that container may have got the packet that it complains about.
 */
#ifndef BPF_PORTMAP_ICMP_ERROR_H
#define BPF_PORTMAP_ICMP_ERROR_H

#include "egress.h"
#include "offload_send.h"

/* Whether what the inside sends leaves by ifindex, towards an address of no container: then the
 * sender of an error may be a router on the way. */
INLINE bool error_is_of_way(const struct packet *packet, const struct connection *connection,
			    __u32 ifindex)
{
	return connection->leave[OUTWARDS].ifindex == ifindex &&
	       !endpoint_find(packet->tuple.source);
}

/* Whether a container's error would be translated by a connection of another container. It may be,
 * where the quoted packet was sent to the error's own sender, or that is a router on the way.
 * owner: of the veth by which the error came; ifindex: where routing sees it come in. */
GLOBAL_FUNCTION bool error_is_foreign(const struct packet *packet, const struct owner *owner,
				      __u32 ifindex)
{
	struct scratch *scratch = scratch_get();
	struct translation translation;
	struct connection *connection;
	struct tuple tuple;

	if (!packet || !owner || !scratch)
		return true;
	if (address_equal(packet->tuple.source, packet->sender))
		return false;
	__builtin_memcpy(&tuple, &packet->tuple, sizeof(tuple));
	tuple.direction = DIRECTION_OUT;
	connection = connection_confirmed(&tuple, OUTWARDS);
	if (connection) {
		translation_outwards(connection, &translation);
	} else {
		tuple.direction = DIRECTION_IN;
		if (inwards_find_key(&tuple))
			connection = connection_find(&scratch->found);
		translation_inwards(&scratch->found, &translation);
	}
	if (!connection || owner_equal(&connection->owner, owner))
		return false;
	return translation_changes(&translation, &tuple) &&
	       !(tuple.direction == DIRECTION_IN && error_is_of_way(packet, connection, ifindex));
}

/* An ICMP error that arrives, about a packet that left translated. container: the owner of the veth
 * by which it came, about whose connections it may skip the IP stack; {0, 0}: it came elsewhere. */
INLINE enum verdict error_decide_inwards(struct __sk_buff *skb, struct packet *packet,
					 __u32 ifindex, const struct owner *container,
					 struct translation *translation)
{
	struct found found = {};

	packet->tuple.direction = DIRECTION_IN;
	if (!found_prepare(&found, INWARDS) || !inwards_find_key(&packet->tuple) ||
	    !found_look_up(&found))
		return VERDICT_PASS;
	translation_inwards(found.key, translation);
	if (container->slot && owner_equal(&found.connection->owner, container))
		offload_choose(skb, packet, &found, ifindex, translation);
	return VERDICT_TRANSLATE;
}

#endif
