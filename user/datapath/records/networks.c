/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* networks.c - what the conflist of each network says about interfaces. */
#include "datapath/records/networks.h"

#include <stdlib.h>
#include <string.h>

#include "datapath/load/maps.h"
#include "datapath/records/attachments.h"
#include "datapath/records/owners.h"
#include "lib/array.h"
#include "lib/cleanup.h"
#include "net/link.h"

/* The kernel takes a veth out of the map veths when it goes. */
static bool owner_lives(const struct objects *objects, struct owner owner)
{
	struct slot slot;
	uint32_t veth;

	return owner.slot && owner_read(objects, owner, &slot) && slot.live &&
	       map_read(objects, MAP_VETHS, &owner.slot, &veth);
}

static bool witness_lives(const struct objects *objects, struct netlink *socket,
			  const struct network *network)
{
	char name[IF_NAMESIZE];

	return network->witness.slot ? owner_lives(objects, network->witness)
				     : link_name(socket, network->veth, name);
}

static enum walk add_network(const void *key, const void *value, void *context,
			     struct cni_error *err)
{
	struct network_list *networks = context;
	struct known_network *known = ARRAY_ADD(networks->list, networks->count);

	*known = (struct known_network){0};
	memcpy(&known->key, key, sizeof(known->key));
	memcpy(&known->network, value, sizeof(known->network));
	known->key.name[sizeof(known->key.name) - 1] = '\0';
	known->network.uplinks[INTERFACE_NAMES_SIZE - 1] = '\0';
	known->network.excluded_interfaces[INTERFACE_NAMES_SIZE - 1] = '\0';
	return WALK_ON;
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

int networks_read(struct network_list *networks, const struct datapath *datapath,
		  struct netlink *socket, struct cni_error *err)
{
	const struct objects *objects = &datapath->objects;
	cleanup_free struct attachment_entry *entries = NULL;
	size_t count = 0;

	*networks = (struct network_list){0};
	if (map_walk(objects, MAP_NETWORKS, add_network, networks, err))
		return -1;
	for (size_t i = 0; i < networks->count; i++) {
		struct known_network *known = &networks->list[i];

		if (witness_lives(objects, socket, &known->network))
			continue;
		if (!entries && attachment_list(datapath, &entries, &count, err))
			return -1;
		find_witness(known, objects, entries, count);
	}
	return 0;
}

void networks_release(struct network_list *networks)
{
	free(networks->list);
	*networks = (struct network_list){0};
}

void networks_settle(const struct network_list *networks, const struct objects *objects)
{
	cleanup_error struct cni_error ignored = {0};

	for (size_t i = 0; i < networks->count; i++) {
		const struct known_network *known = &networks->list[i];

		if (known->is_dead)
			map_delete(objects, MAP_NETWORKS, &known->key, &ignored);
		else if (known->is_changed)
			network_write(objects, &known->key, &known->network, &ignored);
	}
}

void network_read_names(char text[INTERFACE_NAMES_SIZE], struct network_names *names)
{
	char *name = text;

	names->names = (struct interface_names){.patterns = names->patterns};
	for (; *name && names->names.count < NETWORK_NAMES; name += strlen(name) + 1)
		names->patterns[names->names.count++] = name;
}

/* Each name ends with a zero byte, and so does the whole. */
static bool write_names(char text[INTERFACE_NAMES_SIZE], const struct interface_names *names)
{
	size_t used = 0;

	if (names->count > NETWORK_NAMES)
		return false;
	for (size_t i = 0; i < names->count; i++) {
		size_t size = strlen(names->patterns[i]) + 1;

		if (used + size >= INTERFACE_NAMES_SIZE)
			return false;
		memcpy(text + used, names->patterns[i], size);
		used += size;
	}
	return true;
}

bool network_make(struct network *network, struct network_key *key, const char *name,
		  const struct conf *conf)
{
	*network = (struct network){.attach = conf->attach};
	*key = (struct network_key){0};
	if (strlen(name) >= sizeof(key->name))
		return false;
	memcpy(key->name, name, strlen(name));
	return write_names(network->uplinks, &conf->uplinks) &&
	       write_names(network->excluded_interfaces, &conf->excluded_interfaces);
}

bool network_says(const struct network *one, const struct network *other)
{
	return one->attach == other->attach &&
	       !memcmp(one->uplinks, other->uplinks, sizeof(one->uplinks)) &&
	       !memcmp(one->excluded_interfaces, other->excluded_interfaces,
		       sizeof(one->excluded_interfaces));
}
