/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* check_records.c - checks of what is written down: records of containers, tables, conflists. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "datapath/load/maps.h"
#include "datapath/records/attachments.h"
#include "lib/cleanup.h"
#include "lib/memory.h"
#include "lib/text.h"
#include "operator/conflists.h"
#include "operator/doctor/doctor.h"
#include "operator/print/format.h"
#include "plan/uplinks.h"

/* An ADD or DEL that takes longer was killed. */
#define UNFINISHED_SECONDS 60
#define PLACES_LOOKED_AT 256

static void visit(struct doctor *doctor,
		  void (*look)(struct doctor *doctor, const struct attachment_entry *entry,
			       const char *name))
{
	cleanup_free struct attachment_entry *entries = NULL;
	cleanup_error struct cni_error err = {0};
	size_t count = 0;

	if (attachment_list(&doctor->host.datapath, &entries, &count, &err)) {
		doctor_found(doctor, VERDICT_COULD_NOT_LOOK, NULL, "%s", cni_error_message(&err));
		return;
	}
	for (size_t i = 0; i < count; i++) {
		struct attachment_name name;

		look(doctor, &entries[i],
		     attachment_name_split(entries[i].key.name, &name) ? name.container_id
								       : "a damaged record");
	}
}

static void look_for_veth(struct doctor *doctor, const struct attachment_entry *entry,
			  const char *name)
{
	if (!attachment_has_veth(&doctor->host.datapath.objects, &entry->attachment))
		doctor_found(doctor, VERDICT_WARN, cni_format("bpf-portmap repair"),
			     "container %s has gone without DEL: its ports are still recorded",
			     name);
}

void check_abandoned(struct doctor *doctor)
{
	visit(doctor, look_for_veth);
}

static void look_at_state(struct doctor *doctor, const struct attachment_entry *entry,
			  const char *name)
{
	uint64_t now = (uint64_t)time(NULL);

	if (entry->attachment.state == ATTACHMENT_READY ||
	    now < entry->attachment.since + UNFINISHED_SECONDS)
		return;
	doctor_found(doctor, VERDICT_WARN,
		     cni_format("# remove the container and add it again: cnirun del CONFLIST %s",
				remedy_word(name).text),
		     "ADD or DEL of container %s was cut short", name);
}

void check_unfinished(struct doctor *doctor)
{
	visit(doctor, look_at_state);
}

static void check_source_list(struct doctor *doctor, const struct container_info *container,
			      const __u8 (*addresses)[CNI_ADDRESS_SIZE], __u8 count)
{
	char text[CNI_ADDRESS_TEXT_SIZE];

	for (__u8 i = 0; i < count && i < POLICY_ADDRESSES; i++) {
		if (local_address_exists(doctor->host.socket, addresses[i]))
			continue;
		cni_address_format(addresses[i], text);
		doctor_found(doctor, VERDICT_FAIL,
			     cni_format("ip address add %s/%d dev lo", text,
					cni_address_is_ipv4(addresses[i]) ? 32 : 128),
			     "%s: the host does not have %s of \"snatAddresses\": what leaves with"
			     " it gets no answer",
			     container->text, text);
	}
}

void check_source_addresses(struct doctor *doctor)
{
	cleanup_walk struct map_walk walk = {.objects = &doctor->host.datapath.objects,
					     .map = MAP_POLICIES};
	cleanup_error struct cni_error err = {0};

	while (map_next(&walk, &err)) {
		const struct policy *policy = walk.value;
		const struct container_info *container =
			view_container(&doctor->view, policy->owner);

		if (!container)
			continue;
		check_source_list(doctor, container, policy->sources4, policy->source4_count);
		check_source_list(doctor, container, policy->sources6, policy->source6_count);
	}
	if (walk.failed)
		doctor_found(doctor, VERDICT_COULD_NOT_LOOK, NULL, "%s", cni_error_message(&err));
}

/* Of a few places, spread over all: a connection that has ended keeps its place until another one
 * needs it. Returns how many of PLACES_LOOKED_AT have one that lives. */
static uint32_t half_open_taken(struct doctor *doctor, uint32_t places)
{
	const struct objects *objects = &doctor->host.datapath.objects;
	struct connection connection;
	struct half_open place;
	uint32_t taken = 0;

	for (uint32_t i = 0; i < PLACES_LOOKED_AT; i++) {
		uint32_t number = 1 + (uint32_t)((uint64_t)places * i / PLACES_LOOKED_AT);

		taken += map_read(objects, MAP_HALF_OPEN, &number, &place) && place.id > 1 &&
			 connection_read(objects, &place.key, &connection) &&
			 !(connection.state & STATE_ASSURED) &&
			 view_is_alive(&doctor->view, &place.key, &connection);
	}
	return taken;
}

static void check_half_open(struct doctor *doctor)
{
	uint32_t places = map_capacity(&doctor->host.datapath.objects, MAP_HALF_OPEN) - 1;
	uint32_t taken = places < PLACES_LOOKED_AT ? 0 : half_open_taken(doctor, places);

	if (taken * 5 > PLACES_LOOKED_AT * 4)
		doctor_found(
			doctor, VERDICT_WARN, NULL,
			"%u %% of the %u places for connections that nobody has answered yet are"
			" taken, as in a flood: the oldest give way; `bpf-portmap flows --top 10`"
			" shows whose",
			taken * 100 / PLACES_LOOKED_AT, places);
}

void check_tables(struct doctor *doctor)
{
	const struct objects *objects = &doctor->host.datapath.objects;
	uint32_t most = map_capacity(objects, MAP_ASSURED) - 1; /* place 0 is none */
	struct usage usage;

	check_half_open(doctor);
	if (!usage_read(objects, &usage) || !most)
		return;
	if ((uint64_t)usage.assured * 5 > (uint64_t)most * 4)
		doctor_found(
			doctor, VERDICT_WARN,
			cni_format("# \"flowEntries\": %llu for the first container after a"
				   " restart",
				   2ULL * most),
			"the table of connections has %u of %u; `bpf-portmap flows --top 10` shows"
			" whose",
			usage.assured, most);
}

/* --- conflists, which runtimes read ----------------------------------------------------------- */

#define OURS "bpf-portmap"
#define EDIT_OURS "(.plugins[] | select(.type == \"" OURS "\"))"

static void take_conflist(void *context, const struct conflist_file *file)
{
	struct doctor *doctor = context;
	struct conflist *added;

	/* It is among the plugins of its list. */
	if (file->of_folder)
		return;
	added = ARRAY_ADD(doctor->conflists, doctor->conflist_count);

	*added = (struct conflist){.path = cni_format("%s", file->path),
				   .json = conflist_load(file->path),
				   .is_first = file->is_first};
}

void doctor_read_conflists(struct doctor *doctor)
{
	struct conflist *first = NULL;

	conflists_visit(take_conflist, doctor);
	for (size_t i = 0; i < doctor->conflist_count; i++) {
		first = doctor->conflists[i].is_first ? &doctor->conflists[i] : first;
		first->hides |= conflist_plugin(doctor->conflists[i].json, OURS) != NULL;
	}
}

void check_conflist_syntax(struct doctor *doctor, const struct conflist *list)
{
	if (strstr(list->path, ".conflist") ? !json_is_array(json_object_get(list->json, "plugins"))
					    : !json_is_object(list->json))
		doctor_found(doctor, VERDICT_FAIL, NULL,
			     "%s is no conflist: it is no JSON, or has no \"plugins\"", list->path);
}

void check_conflist_first(struct doctor *doctor, const struct conflist *list)
{
	bool is_missed = doctor->options->port.port && !doctor->mappings.count;

	/* Other engines choose a list by its name, where many without ours are as they should be.
	 */
	if (!list->hides || conflist_plugin(list->json, OURS) ||
	    (!is_missed && !conflist_plugin(list->json, "portmap")))
		return;
	doctor_found(doctor, is_missed ? VERDICT_FAIL : VERDICT_WARN,
		     cni_format("# put " OURS " into %s, or give that file a later"
				" name; then add the containers again",
				remedy_word(list->path).text),
		     "runtimes take %s, the first one of its directory, which does not have " OURS
		     "; a later one has%s",
		     list->path, is_missed ? ", so the port is not mapped" : "");
}

/* A filter of jq(1) on the file. */
static char *remedy_by_jq(const char *filter, const char *path)
{
	struct remedy_word file = remedy_word(path);

	return cni_format("jq %s %s >/run/conflist && cat /run/conflist >%s",
			  remedy_word(filter).text, file.text, file.text);
}

/* NULL: it is a delegate of Multus. */
static char *remedy_for_ours(const char *change, const char *path)
{
	cleanup_free char *file = conflist_file_of(path, OURS);
	cleanup_free char *in_list = cni_format(EDIT_OURS "%s", change);

	return !file ? NULL : remedy_by_jq(!strcmp(file, path) ? in_list : change, file);
}

static char *remedy_without_portmap(const char *path)
{
	cleanup_free char *file = conflist_file_of(path, "portmap");

	if (!file)
		return NULL;
	return !strcmp(file, path)
		       ? remedy_by_jq("del(.plugins[] | select(.type == \"portmap\"))", path)
		       : cni_format("rm %s", remedy_word(file).text);
}

void check_conflist_portmap(struct doctor *doctor, const struct conflist *list)
{
	if (conflist_plugin(list->json, OURS) && conflist_plugin(list->json, "portmap"))
		doctor_found(doctor, VERDICT_FAIL, remedy_without_portmap(list->path),
			     "%s has portmap as well: both map the same ports", list->path);
}

void check_conflist_capability(struct doctor *doctor, const struct conflist *list)
{
	const json_t *ours = conflist_plugin(list->json, OURS);

	if (!ours ||
	    json_is_true(json_object_get(json_object_get(ours, "capabilities"), "portMappings")))
		return;
	doctor_found(doctor, VERDICT_FAIL,
		     remedy_for_ours(".capabilities.portMappings = true", list->path),
		     "%s: " OURS " has no \"capabilities\": {\"portMappings\": true}, so runtimes"
		     " tell it no ports",
		     list->path);
}

/* No probe tells it: packets to Pods of other nodes arrive, with the node's address. */
void check_conflist_masquerade(struct doctor *doctor, const struct conflist *list)
{
	static const char *const with_own[] = {"flannel", "calico", "kindnet", "cilium-cni"};
	const json_t *ours = conflist_plugin(list->json, OURS), *plugin;
	const char *other = NULL;
	size_t i;

	if (!json_is_true(json_object_get(ours, "ipMasq")))
		return;
	json_array_foreach (json_object_get(list->json, "plugins"), i, plugin)
		if (plugin != ours && json_is_true(json_object_get(plugin, "ipMasq")))
			other = plugin_type(plugin);
	for (i = 0; i < sizeof(with_own) / sizeof(with_own[0]); i++)
		other = conflist_plugin(list->json, with_own[i]) ? with_own[i] : other;
	if (other)
		doctor_found(doctor, VERDICT_WARN, remedy_for_ours(".ipMasq = false", list->path),
			     "%s: %s masquerades, and " OURS " too", list->path, other);
}

static bool has_uplink(const struct look *look, const struct network_wish *network)
{
	for (size_t i = 0; i < look->count; i++)
		if (interface_has_role(&look->interfaces[i], ROLE_UPLINK) &&
		    uplink_wish(network, look->interfaces[i].link.name) == WISH_NAMED)
			return true;
	return false;
}

/* Of networks that have a living container. */
void check_named_uplinks(struct doctor *doctor)
{
	const struct look *look = &doctor->look.found;

	for_each (network, look->networks, look->network_count) {
		if (!*network->uplinks || has_uplink(look, network))
			continue;
		doctor_found(doctor, VERDICT_FAIL,
			     cni_format("# correct \"uplinks\" of network %s, then add a container",
					remedy_word(network->name).text),
			     "\"uplinks\" of network %s matches no interface that can be one",
			     network->name);
	}
}
