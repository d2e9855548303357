/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* check_conflist.c - checks of the conflists that runtimes read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/memory.h"
#include "lib/cleanup.h"
#include "lib/text.h"
#include "operator/conflists.h"
#include "operator/doctor/doctor.h"
#include "operator/doctor/remedy_word.h"
#include "plan/uplinks.h"

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

	for (size_t i = 0; i < look->network_count; i++) {
		const struct network_wish *network = &look->networks[i];

		if (!*network->uplinks || has_uplink(look, network))
			continue;
		doctor_found(doctor, VERDICT_FAIL,
			     cni_format("# correct \"uplinks\" of network %s, then add a container",
					remedy_word(network->name).text),
			     "\"uplinks\" of network %s matches no interface that can be one",
			     network->name);
	}
}
