/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * adopt.bpf.c - makes records of connections that conntrack translates. User space runs it by
 * BPF_PROG_TEST_RUN; it is attached nowhere. A program makes the records, because only programs can
 * take a place of the tables and set the marks of `noticed` while others do.
 *
 * `bpf-portmap migrate` runs it before the ports are mapped. conntrack goes on to translate an
 * established connection when the rule that it began with is gone. So our programs must leave its
 * packets alone: its record is of another NAT (FLOW_FOREIGN), and untranslated. It ends when the
 * client begins another connection from the same port, and when it has been idle for too long.
 */
#include "host.h"
#include "adoption.h"

/* Makes the packet that the host would send on this connection. */
INLINE void outward_packet(const struct connection_key *key, struct packet *packet)
{
	struct tuple *tuple = &packet->tuple;

	__builtin_memset(packet, 0, sizeof(*packet));
	address_copy(tuple->source, key->inside);
	address_copy(tuple->destination, key->outside);
	tuple->source_port = key->inside_port;
	tuple->destination_port = key->outside_port;
	tuple->protocol = key->protocol;
	tuple->direction = DIRECTION_OUT;
}

/* The client began it, and all three packets of its beginning were seen. */
INLINE enum adopted adopt_tcp(struct connection *connection)
{
	connection->begun_inside = 0;
	state_set(connection, STATE_REPLIED);
	if (connection->state & STATE_ASSURED)
		return ADOPTED;
	return connection_assure(&draft_get()->key, connection) == ADMISSION_OK ? ADOPTED
										: ADOPTED_HALF;
}

SEC("tc")
int adopt(struct __sk_buff *skb)
{
	struct adoption adoption;
	struct found found = {};
	struct packet packet;

	if (!packet_load(skb, ADOPTION_OFFSET, &adoption, sizeof(adoption)))
		return ADOPTION_FAILED;
	outward_packet(&adoption.key, &packet);
	if (found_outwards(&found, &packet.tuple))
		return ADOPTED;
	host_begin(skb, &packet, FLOW_FOREIGN);
	if (!found_outwards(&found, &packet.tuple))
		return ADOPTION_FAILED;
	if (packet.tuple.protocol == PROTOCOL_TCP)
		return adopt_tcp(found.connection);
	found.connection->last_seen = found.now - adoption.idle;
	return ADOPTED;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
