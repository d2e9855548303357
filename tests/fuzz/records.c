/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* records.c - finds and counts connections, as abi.h and the theory of operation define it. */
#include "records.h"

#include <netinet/in.h>
#include <string.h>

#include "wire.h"

void record_key_of(const struct tuple *tuple, enum way way, struct connection_key *key)
{
	bool in = way == INWARDS;

	memset(key, 0, sizeof(*key));
	memcpy(key->inside, in ? tuple->destination : tuple->source, 16);
	memcpy(key->outside, in ? tuple->source : tuple->destination, 16);
	key->inside_port = in ? tuple->destination_port : tuple->source_port;
	key->outside_port = in ? tuple->source_port : tuple->destination_port;
	key->protocol = tuple->protocol;
}

/* A place has its owner's slot in the bytes that a key leaves unused. */
struct connection_key key_of_place(const struct assured *place)
{
	struct connection_key key = place->key;

	memset(key.reserved, 0, sizeof(key.reserved));
	return key;
}

const struct world_connection *record_at(const struct world *world,
					 const struct connection_key *key)
{
	for (int i = 0; i < world->connection_count; i++)
		if (memcmp(&world->connections[i].key, key, sizeof(*key)) == 0)
			return &world->connections[i];
	return NULL;
}

const struct world_alias *record_alias(const struct world *world,
				       const struct connection_key *external)
{
	for (int i = 0; i < world->alias_count; i++)
		if (memcmp(&world->aliases[i].key, external, sizeof(*external)) == 0)
			return &world->aliases[i];
	return NULL;
}

bool record_has_owner(const struct connection *value)
{
	return value->kind != FLOW_HOST && value->kind != FLOW_FOREIGN;
}

bool record_is_note(const struct world_connection *record)
{
	return record->value.state & STATE_UNCONFIRMED;
}

bool record_is_closed(uint32_t state)
{
	const uint32_t both = STATE_FIN_INSIDE | STATE_FIN_OUTSIDE;

	return state & (STATE_AWAITED_INSIDE | STATE_AWAITED_OUTSIDE) || (state & both) == both;
}

uint32_t record_longest_idle(enum protocol protocol, uint32_t state)
{
	bool assured = state & STATE_ASSURED;

	switch (protocol) {
	case PROTOCOL_TCP:
		if (!assured)
			return state & (STATE_AWAITED_INSIDE | STATE_AWAITED_OUTSIDE) ? 10 : 240;
		if (record_is_closed(state))
			return 240;
		return state & (STATE_FIN_INSIDE | STATE_FIN_OUTSIDE) ? 7440 : 432000;
	case PROTOCOL_UDP:
	case PROTOCOL_UDPLITE:
	case PROTOCOL_SCTP:
		return assured ? 300 : 120;
	case PROTOCOL_ICMP:
	case PROTOCOL_ICMPV6:
		return 60;
	default:
		return 600;
	}
}

uint32_t record_patience(const struct world_connection *record, bool pressed)
{
	if (record->key.protocol == PROTOCOL_TCP && pressed && !(record->value.state & STATE_DATA))
		return 60;
	return record_spared(record);
}

uint32_t record_spared(const struct world_connection *record)
{
	uint32_t longest = record_longest_idle(record->key.protocol, record->value.state);

	if (longest == 7440) /* half-closed */
		return 120;
	return longest == 432000 ? 7440 : longest;
}

uint32_t record_idle(const struct world *world, const struct connection *value)
{
	int32_t idle = (int32_t)(world->now - value->last_seen);

	return idle > 0 ? (uint32_t)idle : 0;
}

bool record_lives(const struct world *world, const struct world_connection *record)
{
	const struct connection *value = &record->value;

	if (!value->id ||
	    record_idle(world, value) > record_longest_idle(record->key.protocol, value->state))
		return false;
	return !record_has_owner(value) || world_owner_live(world, &value->owner);
}

const struct world_connection *record_live(const struct world *world,
					   const struct connection_key *key)
{
	const struct world_connection *record = record_at(world, key);

	return record && record_lives(world, record) ? record : NULL;
}

const struct world_connection *record_settled(const struct world *world,
					      const struct connection_key *key)
{
	const struct world_connection *record = record_live(world, key);

	return record && !record_is_note(record) ? record : NULL;
}

const struct world_connection *record_outwards(const struct world *world, const struct tuple *tuple)
{
	struct connection_key key;

	record_key_of(tuple, OUTWARDS, &key);
	return record_settled(world, &key);
}

static const struct world_connection *find_by_alias(const struct world *world,
						    const struct tuple *tuple)
{
	const struct world_connection *record;
	const struct world_alias *alias;
	struct connection_key key;

	record_key_of(tuple, INWARDS, &key);
	alias = record_alias(world, &key);
	if (!alias || (key.protocol != PROTOCOL_ICMP && key.protocol != PROTOCOL_ICMPV6 &&
		       !world_noticed_external(world, key.inside)))
		return NULL;
	memcpy(key.inside, alias->value.inside, 16);
	key.inside_port = alias->value.inside_port;
	key.outside_port = alias->value.outside_port;
	record = record_live(world, &key);
	return record && record->value.id == alias->value.id ? record : NULL;
}

static const struct world_connection *find_behind(const struct world *world,
						  const struct tuple *tuple, const uint8_t *address,
						  uint16_t port)
{
	const struct world_connection *record;
	struct connection_key key;

	record_key_of(tuple, INWARDS, &key);
	memcpy(key.inside, address, 16);
	key.inside_port = port;
	record = record_live(world, &key);
	return record && record->value.external_port == tuple->destination_port &&
			       record->value.peer_port == tuple->source_port &&
			       !memcmp(record->value.external_address, tuple->destination, 16)
		       ? record
		       : NULL;
}

static void find_by_mapping(const struct world *world, const struct tuple *tuple,
			    struct found_inwards *found)
{
	const struct portmap *mappings[2];
	uint8_t any[16];

	if (!wire_has_ports(tuple->protocol))
		return;
	world_any_address(any, tuple->destination);
	mappings[0] = world_mapping_at(world, tuple->protocol, tuple->destination,
				       tuple->destination_port);
	mappings[1] = world_mapping_at(world, tuple->protocol, any, tuple->destination_port);
	for (int i = 0; i < 2; i++)
		if (mappings[i] && !found->record)
			found->record = find_behind(world, tuple, mappings[i]->container_address,
						    mappings[i]->container_port);
	found->mapping =
		world_mapping(world, tuple->protocol, tuple->destination, tuple->destination_port);
}

void record_find_inwards(const struct world *world, const struct tuple *tuple,
			 struct found_inwards *found)
{
	memset(found, 0, sizeof(*found));
	found->record = find_by_alias(world, tuple);
	if (found->record && record_has_owner(&found->record->value))
		return; /* the next packet looks for a mapping */
	find_by_mapping(world, tuple, found);
	if (!found->record && world_endpoint_likely(world, tuple->destination))
		found->record =
			find_behind(world, tuple, tuple->destination, tuple->destination_port);
}

static bool has_bit(const uint64_t *words, uint32_t bit)
{
	return words[bit / 64] >> bit % 64 & 1;
}

bool world_is_published(const struct world *world, uint16_t port)
{
	return has_bit(world->published_ports, port);
}

bool world_endpoint_likely(const struct world *world, const uint8_t *address)
{
	return has_bit(world->endpoint_addresses,
		       address_hash(address_half(address, 0), address_half(address, 1)));
}

bool world_noticed_external(const struct world *world, const uint8_t *address)
{
	return has_bit((const uint64_t *)world->noticed.external_addresses, external_bit(address));
}

void world_count_ports(const struct world *world, struct external_port *ports)
{
	for (int i = 0; i < world->alias_count; i++)
		external_ports_add(ports, &world->aliases[i].key, &world->aliases[i].value, 1);
	for (int tcp = 0; tcp < 2; tcp++)
		ports[world->surplus_port].aliases[tcp] += world->surplus_port != 0;
}

bool world_port_counts(const struct world *world, uint16_t port, enum protocol protocol)
{
	static struct external_port ports[EXTERNAL_PORTS];

	memset(ports, 0, sizeof(ports));
	world_count_ports(world, ports);
	return ports[port].aliases[protocol == PROTOCOL_TCP];
}

void world_notice_external(struct world *world, const uint8_t *address)
{
	uint32_t bit = external_bit(address);

	world->noticed.external_addresses[bit / 64] |= 1ULL << bit % 64;
}

static void count_record(const struct world_connection *record, struct share *shares,
			 struct usage *usage)
{
	const struct connection *value = &record->value;
	struct share *share = &shares[value->owner.slot];

	if (!(value->state & STATE_COUNTED))
		return;
	usage->assured++;
	usage->proven += record->key.protocol == PROTOCOL_TCP;
	if (share->generation == value->owner.generation)
		share->flows[account_of(&record->key, value)]++;
}

void world_count(const struct world *world, struct share *shares, struct usage *usage)
{
	uint32_t hog = world_places(world)->assured_places / 16;

	*usage = world->usage;
	usage->assured = usage->proven = usage->hogs = 0;
	for (int i = 0; i < WORLD_SLOTS; i++)
		shares[i] = (struct share){.generation = world->shares[i].generation};
	for (int i = 0; i < world->connection_count; i++)
		count_record(&world->connections[i], shares, usage);
	for (uint32_t i = 1; i <= world_places(world)->half_open_places; i++) {
		const struct half_open *place = &world->half_open[i];
		struct share *share = &shares[place->slot % WORLD_SLOTS];

		share->half_open[place->charged_out & 1] +=
			place->id > 1 && place->counted &&
			place->id >> 16 == (share->generation & 0xffff);
	}
	for (int i = 0; i < WORLD_SLOTS; i++)
		for (int account = 0; account < ACCOUNTS; account++)
			usage->hogs += shares[i].flows[account] >= hog;
}

bool record_has_client(const struct world_connection *record)
{
	const struct connection *value = &record->value;

	return value->state & STATE_COUNTED && record_has_owner(value) &&
	       !(value->state & STATE_CHARGED_OUT);
}
