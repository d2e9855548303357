/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * adopt.bpf.c - makes records of connections that something else has begun. User space runs it by
 * BPF_PROG_TEST_RUN; it is attached nowhere. A program makes the records, because only programs can
 * take a place of the tables and set the marks of `noticed` while others do.
 *
 * `bpf-portmap migrate` runs adopt for connections that conntrack translates, before their ports
 * are mapped. conntrack goes on to translate an established connection when the rule that it began
 * with is gone. So our programs must leave its packets alone: its record is of another NAT
 * (FLOW_FOREIGN), and untranslated. It ends when the client begins another connection from the same
 * port, and when it has been idle for too long.
 *
 * `bpf-portmap upgrade` runs take_over for connections in maps of another layout, whose programs
 * still run.
 */
#include "vmlinux.h"
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "adoption.h"
#include "host.h"

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
	struct draft *draft = draft_get();

	if (!draft)
		return ADOPTION_FAILED;
	connection->begun_inside = 0;
	state_set(connection, STATE_REPLIED);
	if (connection->state & STATE_ASSURED)
		return ADOPTED;
	return connection_assure(&draft->key, connection) == ADMISSION_OK ? ADOPTED : ADOPTED_HALF;
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

INLINE bool is_translated_alike(const struct connection *connection, const struct taken_over *taken)
{
	return connection->kind == taken->kind && owner_equal(&connection->owner, &taken->owner) &&
	       address_equal(connection->external_address, taken->external_address) &&
	       connection->external_port == taken->external_port &&
	       connection->peer_port == taken->peer_port;
}

/* A connection that has ended in the other maps may still have the alias here. */
INLINE bool take_alias(struct scratch *scratch)
{
	struct draft *draft = &scratch->draft;
	const struct alias *alias;
	__u32 id;

	alias_draft(draft);
	if (alias_insert())
		return true;
	alias = bpf_map_lookup_elem(&aliases, &draft->external);
	if (!alias)
		return false;
	id = alias->id;
	__builtin_memcpy(&scratch->other, &draft->external, sizeof(scratch->other));
	alias_follow(alias, &scratch->other);
	if (!connection_end(&scratch->other, id))
		alias_delete(&draft->external, id);
	return alias_insert();
}

/* Begins the connection with the same external tuple. Returns its record, or NULL. */
INLINE struct connection *take_over_new(struct scratch *scratch, const struct taken_over *taken)
{
	struct draft *draft = &scratch->draft;
	struct packet packet;
	bool has_alias;

	outward_packet(&taken->key, &packet);
	draft_begin(&packet, OUTWARDS, &taken->owner, taken->kind,
		    taken->state & STATE_CHARGED_OUT);
	address_copy(draft->connection.external_address, taken->external_address);
	draft->connection.external_port = taken->external_port;
	draft->connection.peer_port = taken->peer_port;
	draft->connection.begun_inside = taken->begun_inside & 1;
	has_alias = connection_has_alias(&draft->key, &draft->connection);
	if (has_alias && !take_alias(scratch))
		return NULL;
	if (connection_create() == ADMISSION_OK)
		return bpf_map_lookup_elem(&connections, &draft->key);
	if (has_alias)
		alias_delete(&draft->external, draft->alias.id);
	return NULL;
}

/* What its packets have done meanwhile, seen by programs on either side. */
INLINE enum adopted take_over_state(struct scratch *scratch, struct connection *connection,
				    const struct taken_over *taken)
{
	const struct connection_key *key = &scratch->found;
	enum admission admission = ADMISSION_OK;
	bool was_closed;

	state_set(connection, taken->state & (STATE_REPLIED | STATE_DATA));
	if ((taken->state & STATE_ASSURED) && !(connection->state & STATE_ASSURED))
		admission = connection_admit(key, connection);
	if ((__s32)(taken->last_seen - connection->last_seen) < 0)
		return admission == ADMISSION_OK ? ADOPTED : ADOPTED_HALF;
	connection->last_seen = taken->last_seen;
	was_closed = state_is_closed(connection->state);
	state_set(connection, taken->state & STATE_FINS);
	if (!was_closed && state_is_closed(connection->state))
		connection_close(key, connection, clock_second());
	return admission == ADMISSION_OK ? ADOPTED : ADOPTED_HALF;
}

SEC("tc")
int take_over(struct __sk_buff *skb)
{
	struct scratch *scratch = scratch_get();
	struct connection *connection;
	struct taken_over taken;
	__u32 id;

	if (!scratch || !packet_load(skb, ADOPTION_OFFSET, &taken, sizeof(taken)))
		return ADOPTION_FAILED;
	__builtin_memcpy(&scratch->found, &taken.key, sizeof(scratch->found));
	connection = bpf_map_lookup_elem(&connections, &scratch->found);
	if (connection && (!connection->id || !is_translated_alike(connection, &taken))) {
		id = connection->id;
		connection_end(&scratch->found, id);
		connection = NULL;
	}
	if (!connection) {
		connection = take_over_new(scratch, &taken);
		if (!connection)
			return ADOPTION_FAILED;
		connection->last_seen = taken.last_seen;
		for (int way = 0; way < 2; way++) {
			connection->packets[way] = taken.packets[way];
			connection->bytes[way] = taken.bytes[way];
		}
	}
	return take_over_state(scratch, connection, &taken);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
