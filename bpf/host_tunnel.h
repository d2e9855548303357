/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * host_tunnel.h - which peers the host itself exchanges GRE, ESP, IP in IP and other protocols
 * without ports with.
 *
 * Such a packet says only which two addresses it belongs to, so of one peer and protocol the host
 * or one container can have the packets. No socket shows that the host uses them: a tunnel device
 * has none, and may only receive (a mirror port's ERSPAN). So both directions of what is the host's
 * are noted here, and a container does not begin what the host has. Where the host answers with an
 * ICMP error, it has no use for what the peer sends: the peer of a container that is restarting.
 * A firewall may drop them without an error: so what belonged to a container that has gone is not
 * noted as the host's, either.
 *
 * Peers share places, and the key of the hash is secret: outsiders cannot choose whose note theirs
 * replaces. A tunnel that lost its note has it back with its next packet. What arrives may have
 * forged its peer, so it replaces no note of one to which the host has sent lately.
 */
#pragma once

#include "alias.h"

#define TUNNEL_PLACES 4096 /* a power of two */
#define TUNNEL_REFUSED_SECONDS 60

struct tunnel_note {
	__u64 hash; /* whose note it is; 0: nobody's */
	/* CLOCK_MONOTONIC, seconds; 0: never */
	__u32 seen;
	__u32 refused; /* by an error of the host */
	__u32 sent;    /* by the host */
	__u32 reserved;
};

MAP_OF(tunnel_notes, BPF_MAP_TYPE_ARRAY, BPF_F_MMAPABLE, __u32, struct tunnel_note, TUNNEL_PLACES);

/* Returns the place of a packet's note, and whose it should be. key: inside: the host's address. */
INLINE struct tunnel_note *tunnel_place(const struct connection_key *key, __u64 *whose)
{
	__u32 place;

	*whose = external_hash(key);
	place = *whose % TUNNEL_PLACES;
	return bpf_map_lookup_elem(&tunnel_notes, &place);
}

INLINE bool tunnel_is_recent(__u32 second)
{
	return second && idle_seconds(clock_second(), second) <= TIMEOUT_PORTLESS;
}

/* Returns the note of a packet without ports, of the host's or of an error about one, and its key.
 * NULL: it has none, and does not get another one's place. */
INLINE struct tunnel_note *tunnel_note_of(const struct packet *packet, enum way way, bool sends,
					  struct connection_key *key)
{
	struct tunnel_note *note;
	__u64 whose;

	connection_key_of(&packet->tuple, way, key);
	note = tunnel_place(key, &whose);
	if (!note || note->hash == whose)
		return note;
	if (!sends && tunnel_is_recent(note->sent))
		return NULL;
	note->hash = whose;
	note->seen = note->refused = note->sent = 0;
	return note;
}

/* Notes a packet that the host sends, or gives its address. */
GLOBAL_FUNCTION int tunnel_send(const struct packet *packet)
{
	struct connection_key key;
	struct tunnel_note *note = packet ? tunnel_note_of(packet, OUTWARDS, true, &key) : NULL;

	if (note && note->sent != clock_second())
		note->seen = note->sent = clock_second();
	return 0;
}

/* Notes a packet that may be for the host, if it has come by an uplink: a container could forge the
 * peer of another one. */
GLOBAL_FUNCTION int tunnel_receive(const struct packet *packet, __u32 ifindex)
{
	const struct interface *interface = bpf_map_lookup_elem(&interfaces, &ifindex);
	struct connection_key key;
	struct tunnel_note *note;
	__u32 now = clock_second();

	if (!packet || !interface || interface->role != ROLE_UPLINK || interface->bridge_ifindex)
		return 0;
	note = tunnel_note_of(packet, INWARDS, false, &key);
	if (note && note->seen != now &&
	    (!note->refused || idle_seconds(now, note->refused) > TUNNEL_REFUSED_SECONDS) &&
	    !bpf_map_lookup_elem(&aliases, &key)) /* of a dead connection, or it had the packet */
		note->seen = now;
	return 0;
}

/* The host sends an error about such a packet. */
GLOBAL_FUNCTION int tunnel_refuse(const struct packet *error)
{
	struct connection_key key;
	struct tunnel_note *note = error ? tunnel_note_of(error, OUTWARDS, false, &key) : NULL;

	if (!note)
		return 0;
	note->seen = note->sent = 0;
	note->refused = clock_second();
	return 0;
}

/* Returns whether the packets with this external tuple have been the host's lately. */
INLINE bool tunnel_is_of_host(const struct connection_key *external)
{
	const struct tunnel_note *note;
	__u64 whose;

	note = tunnel_place(external, &whose);
	return note && note->hash == whose && tunnel_is_recent(note->seen);
}
