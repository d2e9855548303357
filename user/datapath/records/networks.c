/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* networks.c - what each conflist last said about interfaces. */
#include "datapath/records/networks.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cleanup.h"
#include "datapath/records/attachments.h"
#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "lib/warning.h"

#define MAX_NAMES 64

/* Each name ends with a zero byte, and so does the whole. False: they are too many; with half of
 * them `attach` would leave the other interfaces alone. */
static bool write_names(char text[INTERFACE_NAMES_SIZE], const struct interface_names *names)
{
	size_t used = 0;

	for (size_t i = 0; i < names->count; i++) {
		size_t size = strlen(names->patterns[i]) + 1;

		if (used + size >= INTERFACE_NAMES_SIZE)
			return false;
		memcpy(text + used, names->patterns[i], size);
		used += size;
	}
	return true;
}

static void read_names(char text[INTERFACE_NAMES_SIZE], struct interface_names *names,
		       char *patterns[MAX_NAMES])
{
	char *name = text;

	text[INTERFACE_NAMES_SIZE - 1] = '\0';
	names->patterns = patterns;
	for (names->count = 0; *name && names->count < MAX_NAMES; name += strlen(name) + 1)
		patterns[names->count++] = name;
}

void network_remember(const struct objects *objects, const char *name, const struct conf *conf)
{
	struct network before, now = {0};
	int map = objects->maps[MAP_NETWORKS];
	struct network_key key = {0};

	if (strlen(name) >= sizeof(key.name))
		return;
	memcpy(key.name, name, strlen(name));
	if (!write_names(now.uplinks, &conf->uplinks) ||
	    !write_names(now.excluded_interfaces, &conf->excluded_interfaces)) {
		bpf_map_delete_elem(map, &key);
		warning("\"uplinks\" or \"excludeInterfaces\" of network %s are longer than %d"
			" bytes, so `bpf-portmap attach` does not obey them; use globs",
			name, INTERFACE_NAMES_SIZE);
		return;
	}
	if (!bpf_map_lookup_elem(map, &key, &before) && !memcmp(&before, &now, sizeof(now)))
		return;
	if (bpf_map_update_elem(map, &key, &now, BPF_ANY))
		warning("cannot write down the uplinks of network %s for `bpf-portmap attach`: %s",
			name, strerror(errno));
}

static bool is_used(const char *network, const struct attachment_entry *entries, size_t count)
{
	struct attachment_name name;

	for (size_t i = 0; i < count; i++)
		if (attachment_name_split(entries[i].key.name, &name) &&
		    !strcmp(name.network, network))
			return true;
	return false;
}

struct visit {
	const struct datapath *datapath;
	const struct attachment_entry *entries;
	size_t entry_count;
	int (*visit)(const struct conf *conf, void *context, struct cni_error *err);
	void *context;
};

/* The network's first ADD may have run since the attachments were listed. It writes the attachment
 * before the network, so listing them once more shows it. */
static void forget_network(const struct datapath *datapath, const struct network_key *key)
{
	cleanup_free struct attachment_entry *entries = NULL;
	struct cni_error ignored = {0};
	cleanup_lock int lock = lock_take(&ignored);
	size_t count;

	if (lock >= 0 && !attachment_list(datapath, &entries, &count, &ignored) &&
	    !is_used(key->name, entries, count))
		bpf_map_delete_elem(datapath->objects.maps[MAP_NETWORKS], key);
	cni_error_release(&ignored);
}

static enum walk visit_network(const void *key, const void *value, void *context,
			       struct cni_error *err)
{
	char *uplinks[MAX_NAMES], *excluded[MAX_NAMES];
	struct conf conf = {0};
	const struct network_key *name = key;
	const struct visit *visit = context;
	struct network network;

	if (!is_used(name->name, visit->entries, visit->entry_count)) {
		forget_network(visit->datapath, name);
		return WALK_ON;
	}
	memcpy(&network, value, sizeof(network));
	read_names(network.uplinks, &conf.uplinks, uplinks);
	read_names(network.excluded_interfaces, &conf.excluded_interfaces, excluded);
	return visit->visit(&conf, visit->context, err) ? WALK_FAILED : WALK_ON;
}

int networks_visit(const struct datapath *datapath,
		   int (*visit)(const struct conf *conf, void *context, struct cni_error *err),
		   void *context, struct cni_error *err)
{
	cleanup_free struct attachment_entry *entries = NULL;
	struct visit walk = {.datapath = datapath, .visit = visit, .context = context};

	if (attachment_list(datapath, &entries, &walk.entry_count, err))
		return -1;
	walk.entries = entries;
	return map_walk(&datapath->objects, MAP_NETWORKS, visit_network, &walk, err);
}
