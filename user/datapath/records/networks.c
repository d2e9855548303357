/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* networks.c - what the conflist of each network says about interfaces, and the host's addresses.
 */
#include "datapath/records/networks.h"

#include <stdlib.h>
#include <string.h>

#include "datapath/load/maps.h"
#include "datapath/records/attachments.h"
#include "lib/cleanup.h"
#include "net/link.h"
#include "lib/digest.h"
#include "lib/memory.h"

/* The kernel takes a veth out of the map veths when it goes. */
static bool owner_lives(const struct objects *objects, struct owner owner)
{
	struct slot slot;
	uint32_t veth;

	return owner.slot && owner_read(objects, owner, &slot) && slot.live &&
	       map_read(objects, MAP_VETHS, &owner.slot, &veth);
}

static bool witness_lives(const struct objects *objects, const struct network *network)
{
	char name[IF_NAMESIZE];

	return network->witness.slot ? owner_lives(objects, network->witness)
				     : link_name(network->veth, name);
}

static void add_network(struct known_network *known, const void *key, const void *value)
{
	*known = (struct known_network){0};
	memcpy(&known->key, key, sizeof(known->key));
	memcpy(&known->network, value, sizeof(known->network));
	known->key.name[sizeof(known->key.name) - 1] = '\0';
	memset(known->network.uplinks + INTERFACE_NAMES_SIZE - 2, 0, 2);
	memset(known->network.excluded_interfaces + INTERFACE_NAMES_SIZE - 2, 0, 2);
}

/* Its witness has gone. */
static void find_witness(struct known_network *known, const struct objects *objects,
			 const struct attachment_entry *entries, size_t count)
{
	struct attachment_name name;

	known->is_dead = true;
	for (size_t i = 0; i < count && known->is_dead; i++) {
		struct owner owner = entries[i].attachment.owner;

		if (!attachment_name_split(entries[i].key.name, &name) ||
		    strcmp(name.network, known->key.name) != 0 || !owner_lives(objects, owner))
			continue;
		known->is_dead = false;
		known->is_changed = true;
		known->network.witness = owner;
		known->network.veth = entries[i].attachment.ifindex;
	}
}

int networks_read(struct known_networks *known, const struct datapath *datapath,
		  struct cni_error *err)
{
	const struct objects *objects = &datapath->objects;
	cleanup_walk struct map_walk walk = {.objects = objects, .map = MAP_NETWORKS};
	cleanup_free struct attachment_entry *entries = NULL;
	size_t entry_count = 0;

	while (map_next(&walk, err))
		add_network(ARRAY_ADD(known->list, known->count), walk.key, walk.value);
	if (walk.failed)
		return -1;
	for_each (one, known->list, known->count) {
		if (witness_lives(objects, &one->network))
			continue;
		if (!entries && attachment_list(datapath, &entries, &entry_count, err))
			return -1;
		find_witness(one, objects, entries, entry_count);
		known->has_news = true;
	}
	return 0;
}

void networks_release(struct known_networks *known)
{
	free(known->list);
	*known = (struct known_networks){0};
}

int networks_settle(const struct known_networks *known, const struct objects *objects,
		    struct cni_error *err)
{
	for_each (one, known->list, known->count) {
		if (one->is_dead)
			map_delete(objects, MAP_NETWORKS, &one->key, NULL);
		else if (one->is_changed)
			network_write(objects, &one->key, &one->network, NULL);
	}
	return known->is_new ? network_write(objects, &known->key, &known->network, err) : 0;
}

/* False: they are longer than the entry has room for, a zero byte at its end included. */
static bool copy_names(char text[INTERFACE_NAMES_SIZE], const char *names)
{
	const char *end = names;

	while (*end)
		end += strlen(end) + 1;
	if (end - names >= INTERFACE_NAMES_SIZE)
		return false;
	memcpy(text, names, (size_t)(end - names));
	return true;
}

static bool make_key(struct network_key *key, const char *name)
{
	*key = (struct network_key){0};
	if (strlen(name) >= sizeof(key->name))
		return false;
	memcpy(key->name, name, strlen(name));
	return true;
}

/* False: the names are longer than an entry holds. */
static bool make_entry(struct network *network, struct network_key *key, const char *name,
		       const struct conf *conf)
{
	*network = (struct network){.attach = conf->attach};
	return make_key(key, name) && copy_names(network->uplinks, conf->uplinks) &&
	       copy_names(network->excluded_interfaces, conf->excluded_interfaces);
}

bool network_read_by_name(const struct objects *objects, const char *name, struct network_key *key,
			  struct network *network)
{
	return make_key(key, name) && map_read(objects, MAP_NETWORKS, key, network);
}

static uint8_t choose_number(const struct known_networks *known, const char *name)
{
	uint64_t taken = 1;
	uint8_t number;

	for_each (one, known->list, known->count) {
		if (one->is_dead)
			continue;
		if (!strcmp(one->key.name, name) && one->network.number)
			return one->network.number;
		taken |= 1ULL << one->network.number % NETWORK_NUMBERS;
	}
	if (!*known->network.uplinks)
		return 0;
	for (number = 1; number < NETWORK_NUMBERS; number++)
		if (!(taken >> number & 1))
			return number;
	return 0;
}

/* Whoever their witnesses are. */
static bool says_the_same(const struct network *one, const struct network *other)
{
	return one->attach == other->attach &&
	       !memcmp(one->uplinks, other->uplinks, sizeof(one->uplinks)) &&
	       !memcmp(one->excluded_interfaces, other->excluded_interfaces,
		       sizeof(one->excluded_interfaces));
}

void networks_add(struct known_networks *known, const char *name, const struct conf *conf,
		  uint32_t veth)
{
	bool fits = make_entry(&known->network, &known->key, name, conf);

	known->network.number = choose_number(known, name);
	known->network.veth = veth;
	known->is_new = fits;
	for_each (one, known->list, known->count) {
		if (strcmp(one->key.name, name) != 0)
			continue;
		if (!one->is_dead && says_the_same(&one->network, &known->network))
			known->is_new = false;
		/* What it said before is not true any more. */
		known->has_news |= !fits;
		one->is_dead |= !fits;
	}
	known->has_news |= known->is_new;
	if (fits && *known->network.uplinks && !known->network.number)
		warning("\"uplinks\" of network %s hold for it alone as long as %d others have "
			"some: its"
			" ports are reached by every uplink of this host",
			name, NETWORK_NUMBERS - 1);
	if (!fits)
		warning("\"uplinks\" or \"excludeInterfaces\" of network %s are longer than %d "
			"bytes, so they are not kept: containers of other networks, and the verbs "
			"of bpf-portmap, do not respect them; use globs",
			name, INTERFACE_NAMES_SIZE);
}

/* --- the host's addresses ------------------------------------------------------------------- */

/* The entry for no address holds a digest of all others. To compare it instead of reading the whole
 * map makes an ADD a tenth shorter. */
static const struct host_address_key no_address;

struct wanted {
	struct host_address_key key;
	struct host_address value;
	bool is_there;
};

struct comparison {
	const struct objects *objects;
	struct wanted *wanted; /* sorted by key */
	size_t count;
	uint64_t digest;
};

static int compare_keys(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct host_address_key));
}

/* With a longer prefix one interface's last address may be another's own. */
static bool is_own(const struct address_list *addresses, const uint8_t address[CNI_ADDRESS_SIZE])
{
	for (size_t i = 0; i < addresses->address_count; i++)
		if (!addresses->addresses[i].is_broadcast &&
		    !memcmp(addresses->addresses[i].address, address, CNI_ADDRESS_SIZE))
			return true;
	return false;
}

static void compare_with(struct comparison *comparison, const struct address_list *addresses,
			 const bool *excluded)
{
	struct wanted *wanted = or_exit(calloc(addresses->address_count + 1, sizeof(*wanted)));
	size_t kept = 0;

	comparison->wanted = wanted;
	for_each (address, addresses->addresses, addresses->address_count) {
		struct wanted *next = &wanted[comparison->count];

		if (address->is_broadcast && is_own(addresses, address->address))
			continue;
		memcpy(next->key.address, address->address, CNI_ADDRESS_SIZE);
		next->value.ifindex = addresses->interfaces[address->interface].ifindex;
		/* A broadcast address is kept as an excluded one. */
		next->value.excluded = address->is_broadcast || excluded[address->interface];
		comparison->count++;
	}
	qsort(wanted, comparison->count, sizeof(*wanted), compare_keys);
	/* Of an address that is there twice one stays, which is excluded where either is. */
	for (size_t i = 0; i < comparison->count; i++) {
		if (!kept || compare_keys(&wanted[kept - 1], &wanted[i]))
			wanted[kept++] = wanted[i];
		else
			wanted[kept - 1].value.excluded |= wanted[i].value.excluded;
	}
	comparison->count = kept;
	comparison->digest = DIGEST_OF_NOTHING;
	for (size_t i = 0; i < kept; i++) {
		comparison->digest =
			digest_add(comparison->digest, &wanted[i].key, sizeof(wanted[i].key));
		comparison->digest = digest_add(comparison->digest, &wanted[i].value.excluded,
						sizeof(wanted[i].value.excluded));
	}
}

static bool is_settled(const struct comparison *comparison)
{
	struct host_address all;

	return map_read(comparison->objects, MAP_HOST_ADDRESSES, &no_address, &all) &&
	       all.digest == comparison->digest;
}

/* Deletes what the host does not have any more, and notes what is there already. */
static int compare_entries(struct comparison *comparison, struct cni_error *err)
{
	cleanup_walk struct map_walk walk = {.objects = comparison->objects,
					     .map = MAP_HOST_ADDRESSES};

	while (map_next(&walk, err)) {
		const struct host_address *value = walk.value;
		struct wanted *found = bsearch(walk.key, comparison->wanted, comparison->count,
					       sizeof(*comparison->wanted), compare_keys);

		if (found)
			found->is_there = value->excluded == found->value.excluded;
		else if (map_delete(comparison->objects, MAP_HOST_ADDRESSES, walk.key, err))
			return -1;
	}
	return walk.failed ? -1 : 0;
}

bool host_addresses_are_written(const struct objects *objects, const struct address_list *addresses,
				const bool *excluded)
{
	struct comparison comparison = {.objects = objects};

	compare_with(&comparison, addresses, excluded);
	free(comparison.wanted);
	return is_settled(&comparison);
}

/* While the map is being written it has no digest. */
int host_addresses_write(const struct objects *objects, const struct address_list *addresses,
			 const bool *excluded, struct cni_error *err)
{
	struct comparison comparison = {.objects = objects};
	cleanup_free struct wanted *wanted = NULL;
	struct host_address all = {0};

	compare_with(&comparison, addresses, excluded);
	wanted = comparison.wanted;
	if (is_settled(&comparison))
		return 0;
	if (map_delete(objects, MAP_HOST_ADDRESSES, &no_address, err) ||
	    compare_entries(&comparison, err))
		return -1;
	for (size_t i = 0; i < comparison.count; i++)
		if (!wanted[i].is_there &&
		    map_write(objects, MAP_HOST_ADDRESSES, &wanted[i].key, &wanted[i].value, err))
			return -1;
	all.digest = comparison.digest;
	return map_write(objects, MAP_HOST_ADDRESSES, &no_address, &all, err);
}
