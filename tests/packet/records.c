/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * records.c - inserts records of connections with their places, aliases and counts, reads them, and
 * checks that all of these agree.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "datapath/load/device_layout.h"
#include "trace_event.h"
#include "bpf/portmap.skel.h"
#include "keys.h"
#include "records.h"
#include "row.h"

/* Seconds that a place is protected, as connection_soonest() in bpf/ computes them */
#define PROTECTED_TCP 60
#define PROTECTED_TCP_DATA 7440 /* then it gives way to others */
#define PROTECTED_TCP_FIN 15
#define PROTECTED_UDP 300
#define PROTECTED_ECHO 60
#define LONGEST_ID 0xffff

/* The kernel rounds the size of an array's element up to 8 bytes. */
struct client_share {
	uint32_t connections;
	uint32_t unused;
};

/* Arrays that are mapped: writing all of one costs no system call. */
#define TABLES(X) \
	X(struct half_open, half_open) \
	X(struct assured, assured) \
	X(struct share, shares) \
	X(struct usage, usage) \
	X(struct client_share, client_shares) \
	X(struct port_share, port_shares) \
	X(struct external_port, external_ports) \
	X(struct tunnel_note, tunnel_notes)
#define BITS(X) \
	X(struct noticed, noticed) \
	X(__u64, published_ports) \
	X(__u64, endpoint_addresses)

static struct {
	uint32_t half_open_count;
	uint32_t assured_count;
#define X(type, map) type *map;
	TABLES(X)
	BITS(X)
#undef X
	void *memos;
} tables;

/* The counts that the records require */
struct counted {
	struct share shares[MAX_SLOTS];
	uint32_t clients[SHARES];
	uint32_t ports[SHARES];
	struct external_port external[EXTERNAL_PORTS];
	uint32_t assured;
	uint32_t records;
	uint32_t aliases;
};

static struct portmap_bpf *programs;

void records_prepare(struct portmap_bpf *opened)
{
	programs = opened;
#define X(type, map) \
	if (bpf_map__set_map_flags(opened->maps.map, BPF_F_MMAPABLE)) \
		errx(1, "map %s", bpf_map__name(opened->maps.map));
	TABLES(X)
	BITS(X)
#undef X
}

static size_t size_of(const struct bpf_map *map)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t size = (size_t)bpf_map__max_entries(map) * ((bpf_map__value_size(map) + 7) / 8 * 8);

	return (size + page - 1) / page * page;
}

static void *memory_of(const struct bpf_map *map)
{
	void *memory =
		mmap(NULL, size_of(map), PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	if (memory == MAP_FAILED)
		err(1, "mapping %s", bpf_map__name(map));
	return memory;
}

void records_forget_memos(void)
{
	memset(tables.memos, 0, size_of(programs->maps.memos));
}

void records_open(void)
{
#define X(type, map) tables.map = memory_of(programs->maps.map);
	TABLES(X)
	BITS(X)
#undef X
	tables.memos = memory_of(programs->maps.memos);
	tables.half_open_count = bpf_map__max_entries(programs->maps.half_open);
	tables.assured_count = bpf_map__max_entries(programs->maps.assured);
}

/* A walk over all entries of a hash with keys of connections: a system call for many of them. */
#define CHUNK 4096

struct walk {
	struct connection_key keys[CHUNK];
	union {
		struct connection connections[CHUNK];
		struct alias aliases[CHUNK];
	};
	uint32_t position;
	bool begun, ended;
};

static struct walk walk;

static void walk_begin(void)
{
	walk.begun = walk.ended = false;
}

/* Returns how many more are in walk.keys and its values, 0 at the end. */
static uint32_t walk_on(const struct bpf_map *map, bool deletes)
{
	uint32_t count = CHUNK, *from = walk.begun ? &walk.position : NULL;
	int fd = bpf_map__fd(map);

	do {
		if (walk.ended)
			return 0;
		count = CHUNK;
		walk.ended = deletes ? bpf_map_lookup_and_delete_batch(fd, from, &walk.position,
								       walk.keys, walk.connections,
								       &count, NULL)
				     : bpf_map_lookup_batch(fd, from, &walk.position, walk.keys,
							    walk.connections, &count, NULL);
		if (walk.ended && errno != ENOENT)
			err(1, "walking over %s", bpf_map__name(map));
		from = &walk.position;
		walk.begun = true;
	} while (!count);
	return count;
}

static void clear_hash(const struct bpf_map *map)
{
	walk_begin();
	while (walk_on(map, true))
		;
}

#define CLEAR(type, map) memset(tables.map, 0, size_of(programs->maps.map));

void records_clear(void)
{
	clear_hash(programs->maps.connections);
	clear_hash(programs->maps.aliases);
	TABLES(CLEAR)
}

void records_clear_bits(void)
{
	BITS(CLEAR)
}

static int find(const struct bpf_map *map, const struct connection_key *key, void *value)
{
	return bpf_map_lookup_elem(bpf_map__fd(map), key, value);
}

static void store(const struct bpf_map *map, const struct connection_key *key, const void *value)
{
	if (bpf_map_update_elem(bpf_map__fd(map), key, value, BPF_ANY))
		err(1, "writing to map %s", bpf_map__name(map));
}

/* As in bpf/shares.h */
static uint32_t hog_size(void)
{
	return (tables.assured_count - 1) / 16;
}

static uint32_t hogs_of(const struct share *share)
{
	uint32_t hogs = 0;

	for (int i = 0; i < ACCOUNTS; i++)
		hogs += share->flows[i] >= hog_size();
	return hogs;
}

static uint32_t count_hogs(void)
{
	uint32_t hogs = 0;

	for (int slot = 1; slot < MAX_SLOTS; slot++)
		hogs += hogs_of(&tables.shares[slot]);
	return hogs;
}

/* NULL: it belongs to another generation. */
static struct share *share_of(const struct owner *owner)
{
	struct share *share = &tables.shares[owner->slot];

	if (share->generation == 0)
		share->generation = owner->generation;
	return share->generation == owner->generation ? share : NULL;
}

/* In a share's half_open: 0: begun by others, 1: by the owner */
static int half_of(const struct connection *connection)
{
	return connection->state & STATE_CHARGED_OUT ? 1 : 0;
}

static void count_connection(const struct connection_key *key, const struct connection *connection,
			     uint32_t by)
{
	struct share *share = share_of(&connection->owner);
	uint32_t hogs;

	tables.usage->assured += by;
	tables.usage->proven += key->protocol == PROTOCOL_TCP ? by : 0;
	if (!(connection->state & STATE_CHARGED_OUT))
		tables.client_shares[client_place(PORT_SEED, key, connection)].connections += by;
	if (!share)
		return;
	hogs = hogs_of(share);
	share->flows[account_of(key, connection)] += by;
	tables.usage->hogs += hogs_of(share) - hogs;
}

static void count_port(const struct connection_key *external, const struct owner *owner,
		       uint32_t by)
{
	const struct owner everybody = {0};

	if (!owner->slot)
		return;
	tables.port_shares[port_place(PORT_SEED, external, &everybody)].ports += by;
	tables.port_shares[port_place(PORT_SEED, external, owner)].ports += by;
}

/* As in bpf/noticed.h */
static void notice(const struct connection_key *external)
{
	uint32_t bit = external_bit(external->inside);

	tables.noticed->external_addresses[bit / 64] |= 1ULL << bit % 64;
}

static void put_alias(const struct connection_key *key, const struct connection *connection)
{
	struct alias alias = {.inside_port = key->inside_port,
			      .outside_port = key->outside_port,
			      .id = connection->id,
			      .made = connection->last_seen};
	struct connection_key external;

	external_key(key, connection, &external);
	memcpy(alias.inside, key->inside, sizeof(alias.inside));
	if (connection->kind == FLOW_MASQUERADE)
		alias.owner = connection->owner;
	store(programs->maps.aliases, &external, &alias);
	count_port(&external, &alias.owner, 1);
	external_ports_add(tables.external_ports, &external, &alias, 1);
	notice(&external);
}

static void delete_alias(const struct connection_key *key, const struct connection *connection)
{
	struct connection_key external;
	struct alias alias;

	external_key(key, connection, &external);
	if (find(programs->maps.aliases, &external, &alias) || alias.id != connection->id)
		return;
	bpf_map_delete_elem(bpf_map__fd(programs->maps.aliases), &external);
	count_port(&external, &alias.owner, (uint32_t)-1);
	external_ports_add(tables.external_ports, &external, &alias, (uint32_t)-1);
}

static uint32_t take_ring_place(const struct connection_key *key,
				const struct connection *connection)
{
	struct share *share = share_of(&connection->owner);
	uint32_t places = tables.half_open_count - 1, number;

	for (uint32_t i = 0; i < places; i++) {
		number = 1 + (tables.usage->half_open_hand + i) % places;
		if (tables.half_open[number].id)
			continue;
		tables.usage->half_open_hand = number;
		tables.half_open[number] = (struct half_open){
			.key = *key,
			.id = connection->id,
			.slot = (uint16_t)connection->owner.slot,
			.charged_out = (uint8_t)half_of(connection),
			.counted = share != NULL,
		};
		if (share)
			share->half_open[half_of(connection)]++;
		return number;
	}
	errx(1, "no place in the ring");
}

static uint32_t protection_of(enum protocol protocol, uint32_t state)
{
	if (!(state & STATE_COUNTED))
		return 0;
	if (protocol == PROTOCOL_TCP && state & STATE_FIN_OUTSIDE)
		return PROTECTED_TCP_FIN;
	if (protocol == PROTOCOL_TCP)
		return state & STATE_DATA ? PROTECTED_TCP_DATA : PROTECTED_TCP;
	return protocol == PROTOCOL_ICMP || protocol == PROTOCOL_ICMPV6 ? PROTECTED_ECHO
									: PROTECTED_UDP;
}

static uint32_t take_assured_place(const struct connection_key *key,
				   const struct connection *connection)
{
	uint32_t protection = protection_of(key->protocol, connection->state);
	uint32_t places = tables.assured_count - 1, number;

	for (uint32_t i = 0; i < places; i++) {
		number = 1 + (tables.usage->assured_hand + i) % places;
		if (tables.assured[number].id)
			continue;
		tables.usage->assured_hand = number;
		tables.assured[number] =
			(struct assured){.id = connection->id,
					 .protected_until = connection->last_seen + protection,
					 .key = *key};
		tables.assured[number].slot = (uint16_t)connection->owner.slot;
		return number;
	}
	errx(1, "no place among the assured");
}

static uint16_t port_of(int port, int chosen)
{
	return (uint16_t)(port == CHOSEN ? chosen : port);
}

void records_key(const struct entry *entry, int chosen, struct connection_key *key)
{
	memset(key, 0, sizeof(*key));
	fixture_address(key->inside, entry->inside);
	fixture_address(key->outside, entry->outside);
	key->inside_port = port_of(entry->inside_port, chosen);
	key->outside_port = port_of(entry->outside_port, chosen);
	key->protocol = (enum protocol)entry->protocol;
}

static const uint8_t *mac_from(enum way way, enum device out)
{
	if (way == OUTWARDS || out == VETH_ROUTED)
		return host_mac(out);
	return host_mac(BRIDGE);
}

/* The result of a route lookup at the time of `looked_up` */
static void put_next_hop(struct next_hop *next_hop, const struct entry *entry, enum way way,
			 uint16_t looked_up)
{
	next_hop->asked = looked_up;
	if (entry->path[way] < PATH_CONTAINER)
		return;
	next_hop->ifindex = entry->out[way];
	next_hop->mtu = entry->path_mtu ? entry->path_mtu : 1500;
	memcpy(next_hop->source, mac_from(way, entry->out[way]), MAC_SIZE);
	if (!entry->neighbour_unknown)
		memcpy(next_hop->destination,
		       way == INWARDS ? host_container_mac(entry->out[way]) : host_neighbour_mac(),
		       MAC_SIZE);
}

/* Where packets went, in the stack or past it. A masqueraded one that left the stack was asked
 * about then. */
static void put_ways(struct connection *connection, const struct entry *entry, uint32_t now)
{
	uint16_t looked_up = (uint16_t)(entry->looked_up ? now + 1 - entry->looked_up : 0);

	for (int way = OUTWARDS; way <= INWARDS; way++) {
		connection->path[way] = entry->path[way];
		connection->left_stack[way] = entry->seen[way] ? now + 1 - entry->seen[way] : 0;
		put_next_hop(&connection->next_hop[way], entry, (enum way)way, looked_up);
	}
	if (entry->path[OUTWARDS] < PATH_CONTAINER)
		connection->out_ifindex = entry->out[OUTWARDS];
	connection->out_asked = entry->kind == FLOW_MASQUERADE && entry->seen[OUTWARDS]
					? (uint16_t)connection->left_stack[OUTWARDS]
					: looked_up;
}

static uint32_t bits_of(const struct entry *entry)
{
	static const uint32_t bits[] = {[STATE_NEW] = STATE_COUNTED,
					[STATE_ESTABLISHED] = STATE_COUNTED,
					[STATE_FIN] = STATE_COUNTED | STATE_FIN_OUTSIDE,
					[STATE_CLOSING] = STATE_FIN_INSIDE | STATE_FIN_OUTSIDE};
	uint32_t state = entry->begun_inside ? STATE_CHARGED_OUT : 0;

	if (entry->unconfirmed)
		state |= STATE_UNCONFIRMED;
	if (entry->replied)
		state |= STATE_REPLIED;
	if (entry->with_data)
		state |= STATE_DATA;
	if (entry->settled)
		state |= STATE_SETTLED;
	if (entry->stage == NEW)
		return state;
	return state | STATE_ASSURED | STATE_REPLIED | bits[entry->state];
}

static void fill(struct connection *connection, const struct entry *entry, uint32_t now)
{
	static uint32_t last;

	memset(connection, 0, sizeof(*connection));
	connection->owner = fixture_owner(entry->owner);
	connection->owner.generation -= entry->older_generation;
	last = last >= LONGEST_ID ? 2 : last + 1;
	connection->id = connection->owner.generation << 16 | last | 2;
	connection->state = bits_of(entry);
	fixture_address(connection->external_address, entry->external);
	connection->external_port = (uint16_t)entry->external_port;
	connection->peer_port = (uint16_t)entry->peer_port;
	connection->kind = entry->kind;
	connection->begun_inside = entry->begun_inside;
	connection->last_seen = now - entry->idle;
	if (entry->protocol != IPPROTO_TCP)
		connection->begun = connection->last_seen;
	put_ways(connection, entry, now);
}

static void end(const struct connection_key *key, const struct connection *connection)
{
	struct share *share = share_of(&connection->owner);

	if (connection->state & STATE_COUNTED)
		count_connection(key, connection, (uint32_t)-1);
	if (connection->state & STATE_ASSURED) {
		tables.assured[connection->place].id = 0;
	} else {
		tables.half_open[connection->place].id = 0;
		if (share)
			share->half_open[half_of(connection)]--;
	}
	if (needs_alias(key, connection))
		delete_alias(key, connection);
	bpf_map_delete_elem(bpf_map__fd(programs->maps.connections), key);
}

void fixture_put(const struct entry *entry)
{
	struct connection connection;
	struct connection_key key;

	records_key(entry, 0, &key);
	if (find(programs->maps.connections, &key, &connection) == 0)
		end(&key, &connection);
	fill(&connection, entry, fixture_second());
	connection.place = entry->stage == ANSWERED ? take_assured_place(&key, &connection)
						    : take_ring_place(&key, &connection);
	if (connection.state & STATE_COUNTED)
		count_connection(&key, &connection, 1);
	if (needs_alias(&key, &connection))
		put_alias(&key, &connection);
	store(programs->maps.connections, &key, &connection);
}

static void find_entry(const struct entry *entry, int chosen, struct connection_key *key,
		       struct connection *connection)
{
	records_key(entry, chosen, key);
	if (find(programs->maps.connections, key, connection))
		err(1, "a record that should be there");
}

void fixture_remove(const struct entry *entry)
{
	struct connection connection;
	struct connection_key key;

	find_entry(entry, row_chosen(), &key, &connection);
	end(&key, &connection);
}

void fixture_lose_alias(const struct entry *entry)
{
	struct connection connection;
	struct connection_key key;

	find_entry(entry, row_chosen(), &key, &connection);
	delete_alias(&key, &connection);
}

/* Calls `change` for each record, and stores the changed record. */
static void for_each_record(void (*change)(struct connection *connection, uint32_t by), uint32_t by)
{
	int fd = bpf_map__fd(programs->maps.connections);

	walk_begin();
	for (uint32_t count; (count = walk_on(programs->maps.connections, false));) {
		for (uint32_t i = 0; i < count; i++)
			change(&walk.connections[i], by);
		if (bpf_map_update_batch(fd, walk.keys, walk.connections, &count, NULL))
			err(1, "changing the records");
	}
}

static void let_leave(struct connection *connection, uint32_t now)
{
	connection->left_stack[OUTWARDS] = now;
	connection->left_stack[INWARDS] = now;
}

void fixture_let_leave_stack(void)
{
	for_each_record(let_leave, fixture_second());
}

static void age(struct connection *connection, uint32_t seconds)
{
	connection->last_seen -= seconds;
	if (!(connection->state & (STATE_SEQUENCE_INSIDE | STATE_SEQUENCE_OUTSIDE))) /* not TCP */
		connection->begun -= seconds;
	if (connection->state & STATE_ASSURED)
		tables.assured[connection->place].protected_until -= seconds;
}

void fixture_age_flows(uint32_t seconds)
{
	for_each_record(age, seconds);
}

void fixture_change_places(void (*change)(struct assured *place))
{
	for (uint32_t number = 1; number < tables.assured_count; number++)
		if (tables.assured[number].id)
			change(&tables.assured[number]);
}

void fixture_let_last(enum container container)
{
	(void)container;
	fixture_age_flows(2);
}

struct share fixture_share_of(enum container container)
{
	return tables.shares[container];
}

void fixture_uncount(enum container container)
{
	for (uint32_t number = 1; number < tables.half_open_count; number++)
		if (tables.half_open[number].slot == container)
			tables.half_open[number].counted = 0;
	memset(tables.shares[container].half_open, 0, sizeof(tables.shares[container].half_open));
}

int fixture_ports_of(enum container container, const char *server, int server_port,
		     const char *host)
{
	struct connection_key external = {.outside_port = (uint16_t)server_port,
					  .protocol = PROTOCOL_UDP};
	struct owner owner = fixture_owner(container);

	fixture_address(external.outside, server);
	fixture_address(external.inside, host);
	return (int)tables.port_shares[port_place(PORT_SEED, &external, &owner)].ports;
}

struct usage fixture_usage(void)
{
	return *tables.usage;
}

void fixture_read_flows(struct stored_entries *stored)
{
	uint32_t count;

	memset(stored, 0, sizeof(*stored));
	walk_begin();
	count = walk_on(programs->maps.connections, false);
	for (uint32_t i = 0; i < count && i < MAX_ENTRIES; i++)
		stored->entries[stored->count++] = (struct stored_entry){
			.key = walk.keys[i], .connection = walk.connections[i]};
}

static void check_place(const struct connection_key *key, const struct connection *connection)
{
	bool assured = connection->state & STATE_ASSURED;
	uint32_t number = connection->place;
	struct connection_key there;
	uint32_t id;

	if (number == 0 || number >= (assured ? tables.assured_count : tables.half_open_count)) {
		row_fail("a record has place %u", number);
		return;
	}
	there = assured ? tables.assured[number].key : tables.half_open[number].key;
	memset(there.reserved, 0, sizeof(there.reserved));
	id = assured ? tables.assured[number].id : tables.half_open[number].id;
	if (id != connection->id || memcmp(&there, key, sizeof(*key)))
		row_fail("place %u %s is not its record's", number,
			 assured ? "in assured" : "in half_open");
}

static void check_alias(const struct connection_key *key, const struct connection *connection)
{
	struct connection_key external;
	struct alias alias;

	external_key(key, connection, &external);
	if (find(programs->maps.aliases, &external, &alias)) {
		row_fail("a record of kind %u has no alias", connection->kind);
		return;
	}
	if (alias.id != connection->id)
		row_fail("the alias of a record leads to another one");
	if (memcmp(alias.inside, key->inside, sizeof(alias.inside)) ||
	    alias.inside_port != key->inside_port || alias.outside_port != key->outside_port)
		row_fail("an alias does not lead to its record");
	if (alias.owner.slot != (connection->kind == FLOW_MASQUERADE ? connection->owner.slot : 0))
		row_fail("the ports of slot %u have an alias of slot %u", alias.owner.slot,
			 connection->owner.slot);
}

static void count_record(struct counted *counted, const struct connection_key *key,
			 const struct connection *connection)
{
	struct share *share = &counted->shares[connection->owner.slot];
	bool current =
		tables.shares[connection->owner.slot].generation == connection->owner.generation;

	counted->records++;
	if (!(connection->state & STATE_ASSURED) && current)
		share->half_open[half_of(connection)]++;
	if (!(connection->state & STATE_COUNTED))
		return;
	counted->assured++;
	if (!(connection->state & STATE_CHARGED_OUT))
		counted->clients[client_place(PORT_SEED, key, connection)]++;
	if (current)
		share->flows[account_of(key, connection)]++;
}

static void check_record(struct counted *counted, const struct connection_key *key,
			 const struct connection *connection)
{
	static const uint8_t zeros[sizeof(key->reserved)];

	if (memcmp(key->reserved, zeros, sizeof(zeros)))
		row_fail("the key of a record has something in `reserved`");
	if (!connection->id)
		row_fail("a record that has ended is still there");
	if (connection->id >> 16 != (connection->owner.generation & 0xffff) || connection->id < 2)
		row_fail("a record's id is %x, its owner's generation %u", connection->id,
			 connection->owner.generation);
	check_place(key, connection);
	if (needs_alias(key, connection)) {
		check_alias(key, connection);
		counted->aliases++;
	}
	count_record(counted, key, connection);
}

static void check_records(struct counted *counted)
{
	walk_begin();
	for (uint32_t count; (count = walk_on(programs->maps.connections, false));)
		for (uint32_t i = 0; i < count; i++)
			check_record(counted, &walk.keys[i], &walk.connections[i]);
}

static void count_alias(struct counted *counted, const struct connection_key *key,
			const struct alias *alias)
{
	const struct owner everybody = {0};

	external_ports_add(counted->external, key, alias, 1);
	if (!alias->owner.slot)
		return;
	counted->ports[port_place(PORT_SEED, key, &everybody)]++;
	counted->ports[port_place(PORT_SEED, key, &alias->owner)]++;
}

/* check_record() has found an alias for each record that needs one: there must be no others. */
static void check_aliases(struct counted *counted)
{
	uint32_t found = 0;

	walk_begin();
	for (uint32_t count; (count = walk_on(programs->maps.aliases, false)); found += count)
		for (uint32_t i = 0; i < count; i++)
			count_alias(counted, &walk.keys[i], &walk.aliases[i]);
	if (found != counted->aliases)
		row_fail("there are %u aliases, of records %u", found, counted->aliases);
}

static void check_places(const struct counted *counted)
{
	uint32_t taken = 0;

	for (uint32_t number = 1; number < tables.half_open_count; number++)
		taken += tables.half_open[number].id != 0;
	for (uint32_t number = 1; number < tables.assured_count; number++)
		taken += tables.assured[number].id != 0;
	if (taken != counted->records)
		row_fail("%u places are taken, of %u records", taken, counted->records);
}

static void check_share(uint32_t slot, const struct share *expected)
{
	const struct share *share = &tables.shares[slot];

	for (int i = 0; i < ACCOUNTS; i++)
		if (share->flows[i] != expected->flows[i])
			row_fail("slot %u has %d flows in account %d, expected %d", slot,
				 (int)share->flows[i], i, (int)expected->flows[i]);
	if (memcmp(share->half_open, expected->half_open, sizeof(share->half_open)) != 0)
		row_fail("slot %u has counts half-open %d and %d, expected %d and %d", slot,
			 (int)share->half_open[0], (int)share->half_open[1],
			 (int)expected->half_open[0], (int)expected->half_open[1]);
}

static void check_external_ports(const struct counted *counted)
{
	for (uint32_t port = 0; port < EXTERNAL_PORTS; port++)
		for (int tcp = 0; tcp < 2; tcp++)
			if (tables.external_ports[port].aliases[tcp] !=
			    counted->external[port].aliases[tcp])
				row_fail("external_ports[%u] has %d aliases %s TCP, there are %u",
					 port, (int)tables.external_ports[port].aliases[tcp],
					 tcp ? "of" : "without",
					 counted->external[port].aliases[tcp]);
}

static void check_counts(const struct counted *counted)
{
	if (tables.usage->assured != counted->assured)
		row_fail("%d connections are counted, there are %u", (int)tables.usage->assured,
			 counted->assured);
	for (uint32_t slot = 0; slot < MAX_SLOTS; slot++)
		check_share(slot, &counted->shares[slot]);
	if (tables.usage->hogs != count_hogs())
		row_fail("%d hogs are counted, there are %u", (int)tables.usage->hogs,
			 count_hogs());
	for (uint32_t place = 0; place < SHARES; place++) {
		if (tables.client_shares[place].connections != counted->clients[place])
			row_fail("client_shares[%u] is %d, should be %u", place,
				 (int)tables.client_shares[place].connections,
				 counted->clients[place]);
		if (tables.port_shares[place].ports != counted->ports[place])
			row_fail("port_shares[%u] is %d, should be %u", place,
				 (int)tables.port_shares[place].ports, counted->ports[place]);
	}
}

void records_check(void)
{
	static struct counted counted;

	memset(&counted, 0, sizeof(counted));
	check_records(&counted);
	check_aliases(&counted);
	check_places(&counted);
	check_counts(&counted);
	check_external_ports(&counted);
}
