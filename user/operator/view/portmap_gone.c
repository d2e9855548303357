/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* portmap_gone.c - rules of the reference plugin portmap for containers that are gone. */
#include "operator/view/portmap_gone.h"

#include <stdio.h>
#include <string.h>

#include "cni/cache.h"
#include "datapath/load/maps.h"
#include "datapath/records/attachments.h"
#include "lib/cleanup.h"
#include "lib/memory.h"
#include "operator/view/container_names.h"
#include "plugin/commands.h"

/* A container of ours that lives has the address. */
static bool is_of_another_of_ours(const struct host *host, const struct portmap_entry *entry)
{
	const struct objects *objects = &host->datapath.objects;
	struct attachment_key key;
	struct endpoint_key address;
	struct attachment_name name;
	struct attachment record;
	struct endpoint endpoint;
	struct slot slot;

	memcpy(address.address, entry->rule.new_address, sizeof(address.address));
	if (!datapath_is_usable(&host->datapath) || !endpoint_read(objects, &address, &endpoint) ||
	    !owner_read(objects, endpoint.owner, &slot))
		return false;
	slot_get_key(&slot, &key);
	return attachment_read(objects, &key, &record) && attachment_has_veth(objects, &record) &&
	       attachment_name_split(key.name, &name) && strcmp(name.container_id, entry->id) != 0;
}

/* Whether a runtime has kept an ADD of that container, or with `other` of another one that has its
 * address now, whose namespace exists. */
static bool is_cached(const struct portmap_evidence *evidence, const struct portmap_entry *entry,
		      bool other)
{
	const json_t *cached;
	size_t i;

	json_array_foreach (evidence->cached, i, cached) {
		bool own = portmap_entry_is_of(entry, add_cache_text(cached, "networkName"),
					       add_cache_text(cached, "containerId"));

		if (own != other && !add_cache_is_gone(cached) &&
		    (own || add_cache_has_address(cached, entry->rule.new_address)))
			return true;
	}
	return false;
}

static bool is_gone(const struct portmap_evidence *evidence, const struct portmap_entry *entry)
{
	size_t holders = container_addresses_count(&evidence->addresses, entry->rule.new_address);

	if (!entry->is_address || is_cached(evidence, entry, false))
		return false;
	/* KubeVirt, for example, takes a pod's address from its interface and gives it to a virtual
	 * machine: nobody can see whose it is then. */
	if (!holders)
		return !(evidence->addresses.hidden &&
			 cni_address_is_ipv4(entry->rule.new_address));
	return holders == 1 &&
	       (is_of_another_of_ours(evidence->host, entry) || is_cached(evidence, entry, true));
}

/* All rules that say where they lead must be those of a dead container, and one must say so. */
bool portmap_container_is_gone(const struct portmap_evidence *evidence,
			       const struct portmap_entries *entries,
			       const struct portmap_entry *of)
{
	bool any = false;

	for_each (entry, entries->list, entries->count) {
		if (!entry->is_address || !portmap_entry_is_of(entry, of->network, of->id))
			continue;
		if (!is_gone(evidence, entry))
			return false;
		any = true;
	}
	return any;
}

static bool is_first_of_container(const struct portmap_entries *entries, size_t number)
{
	const struct portmap_entry *entry = &entries->list[number];

	for (size_t i = 0; i < number; i++)
		if (portmap_entry_is_of(&entries->list[i], entry->network, entry->id))
			return false;
	return true;
}

bool portmap_evidence_gather(struct portmap_evidence *evidence, const struct host *host)
{
	cleanup_error struct cni_error unread = {0};
	bool incomplete = false;

	evidence->host = host;
	evidence->cached = add_cache_read(&incomplete);
	return !container_addresses_read(&evidence->addresses, &unread) && !incomplete;
}

void portmap_evidence_release(struct portmap_evidence *evidence)
{
	container_addresses_release(&evidence->addresses);
	json_decref(evidence->cached);
}

int portmap_gone_remove(const struct host *host, bool dry_run, size_t *count, struct cni_error *err)
{
	cleanup_portmap_entries struct portmap_entries entries = {0};
	struct portmap_evidence evidence = {0};
	struct container_names names = {0};
	cleanup_error struct cni_error unread = {0};
	struct cni_error failure = {0};
	char name[ENGINE_TEXT_SIZE];
	bool known;
	int result = 0;

	/* As where no right to read them is given: then nothing is known of any. */
	if (portmap_entries_read(&entries, NULL, &unread) || !entries.count)
		return 0;
	known = portmap_evidence_gather(&evidence, host);
	for (size_t i = 0; known && i < entries.count; i++) {
		const struct portmap_entry *entry = &entries.list[i];

		if (!is_first_of_container(&entries, i) ||
		    !portmap_container_is_gone(&evidence, &entries, entry))
			continue;
		if (!dry_run && reference_remove_rules(entry->network, entry->id, &failure)) {
			result = cni_error_chain(err, &failure);
			continue;
		}
		(*count)++;
		printf("%s portmap's rules of a container that is gone: %s%s%s\n",
		       dry_run ? "would remove" : "removed",
		       container_name_write(&names, entry->id, name),
		       *entry->network ? ", network " : "", entry->network);
	}
	container_names_release(&names);
	portmap_evidence_release(&evidence);
	return result;
}
