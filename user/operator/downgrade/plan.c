/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* plan.c - from the attachments in the maps, and what runtimes keep, to ADDs. */
#include "operator/downgrade/plan.h"

#include <nettle/base64.h>
#include <string.h>

#include "cni/json.h"
#include "datapath/records/attachment_remove.h"
#include "datapath/records/describe.h"
#include "lib/cleanup.h"
#include "lib/memory.h"
#include "lib/text.h"
#include "net/link.h"
#include "net/namespaces.h"
#include "operator/add_cache.h"

#define SHOWN_CONTAINERS 8

/* One run. */
struct planning {
	struct host *host;
	json_t *cached;
	json_t *adds;
	struct namespaces namespaces;
	char *refused; /* containers that cannot be added again, and why; NULL: none */
	size_t refused_count;
};

/* libcni keeps the conflist in a Go []byte, which is base64 in JSON. */
static json_t *decode_list(const json_t *cached)
{
	const char *text = add_cache_text(cached, "config");
	size_t length = BASE64_DECODE_LENGTH(strlen(text));
	cleanup_free uint8_t *list = need(malloc(length + 1));
	struct base64_decode_ctx decoding;

	base64_decode_init(&decoding);
	if (!base64_decode_update(&decoding, &length, list, strlen(text), text) ||
	    !base64_decode_final(&decoding))
		return NULL;
	return json_loadb((const char *)list, length, 0, NULL);
}

/* Under the alias its type is portmap. */
static json_t *find_ours(const json_t *list)
{
	static const char *const types[] = {"bpf-portmap", "portmap"};
	json_t *plugin;
	size_t i;

	for (size_t type = 0; type < sizeof(types) / sizeof(types[0]); type++)
		json_array_foreach (json_object_get(list, "plugins"), i, plugin)
			if (!strcmp(add_cache_text(plugin, "type"), types[type]))
				return plugin;
	return NULL;
}

static const json_t *find_cached(const json_t *all, const struct attachment_name *name)
{
	const json_t *cached;
	size_t i;

	json_array_foreach (all, i, cached)
		if (!strcmp(add_cache_text(cached, "networkName"), name->network) &&
		    !strcmp(add_cache_text(cached, "containerId"), name->container_id) &&
		    !strcmp(add_cache_text(cached, "ifName"), name->ifname) &&
		    json_object_get(cached, "result"))
			return cached;
	return NULL;
}

/* Those arguments that the plugin declares. */
static json_t *make_runtime_config(const json_t *plugin, const json_t *cached)
{
	const json_t *capabilities = json_object_get(plugin, "capabilities");
	json_t *config = json_object(), *value;
	const char *key;

	json_object_foreach (json_object_get(cached, "capabilityArgs"), key, value)
		if (json_is_true(json_object_get(capabilities, key)))
			json_object_set(config, key, value);
	return config;
}

/* What a runtime would write to the plugin. Of the result a plugin that comes later in the list may
 * have added something, which does not matter to ours. NULL: the list has no such plugin. */
static json_t *make_config(const json_t *cached)
{
	cleanup_json json_t *list = decode_list(cached);
	json_t *plugin = find_ours(list), *config;

	if (!plugin)
		return NULL;
	config = json_copy(plugin);
	json_object_set(config, "name", json_object_get(list, "name"));
	json_object_set(config, "cniVersion", json_object_get(list, "cniVersion"));
	json_object_set(config, "prevResult", json_object_get(cached, "result"));
	json_object_set_new(config, "runtimeConfig", make_runtime_config(plugin, cached));
	return config;
}

/* NULL, and *why, where it cannot be made. */
static json_t *make_add(const struct planning *planning, const struct attachment_entry *entry,
			const char **why)
{
	cleanup_error struct cni_error ignored = {0};
	cleanup_json json_t *config = NULL;
	cleanup_free char *arguments = NULL;
	struct attachment_name name;
	const json_t *cached;
	struct link veth;

	*why = "its veth cannot be read";
	if (!attachment_name_split(entry->key.name, &name) ||
	    link_get(planning->host->socket, entry->attachment.ifindex, NULL, &veth, &ignored) ||
	    !veth.ifindex)
		return NULL;
	*why = "no process and no file in /run/netns shows its network namespace";
	if (!namespaces_find(&planning->namespaces, veth.peer_netns_id))
		return NULL;
	*why = "no file in " ADD_CACHE " says how it was added";
	cached = find_cached(planning->cached, &name);
	if (!cached)
		return NULL;
	*why = "the list that " ADD_CACHE " has of it names no such plugin";
	config = make_config(cached);
	if (!config)
		return NULL;
	arguments = add_cache_arguments(cached);
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:O}", "network", name.network,
			 "container_id", name.container_id, "ifname", name.ifname, "args",
			 arguments, "veth", veth.name, "veth_index", (json_int_t)veth.ifindex,
			 "config", config);
}

static void note_refused(struct planning *planning, const struct attachment_entry *entry,
			 const char *why)
{
	char who[DESCRIBED_ATTACHMENT_SIZE], *longer;

	if (planning->refused_count++ >= SHOWN_CONTAINERS)
		return;
	describe_attachment(&planning->host->datapath.objects, entry->key.name, who);
	cni_printable(who, "");
	longer = cni_format("%s%s%s (%s)", planning->refused ? planning->refused : "",
			    planning->refused ? "; " : "", who, why);
	free(planning->refused);
	planning->refused = longer;
}

static int plan_all(struct planning *planning, struct cni_error *err)
{
	cleanup_free struct attachment_entry *entries = NULL;
	const char *why;
	json_t *add;
	size_t count;

	if (attachment_list(&planning->host->datapath, &entries, &count, err))
		return -1;
	for (size_t i = 0; i < count; i++) {
		if (attachment_is_abandoned(&planning->host->datapath.objects,
					    planning->host->socket, &entries[i]))
			continue;
		add = make_add(planning, &entries[i], &why);
		if (add)
			json_array_append_new(planning->adds, add);
		else
			note_refused(planning, &entries[i], why);
	}
	if (!planning->refused_count)
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "no other version can add %zu container%s again: stop %s first: %s%s",
			     planning->refused_count, planning->refused_count == 1 ? "" : "s",
			     planning->refused_count == 1 ? "it" : "them", planning->refused,
			     planning->refused_count > SHOWN_CONTAINERS ? "; and others" : "");
}

int plan_adds(json_t *adds, struct host *host, struct cni_error *err)
{
	bool ignored;
	struct planning planning = {
		.host = host,
		.cached = add_cache_read(&ignored),
		.adds = adds,
	};
	int result;

	namespaces_read(&planning.namespaces, host->socket);
	result = plan_all(&planning, err);
	namespaces_release(&planning.namespaces);
	json_decref(planning.cached);
	free(planning.refused);
	return result;
}

static bool is_planned(const json_t *adds, const struct attachment_entry *entry)
{
	struct attachment_name name;
	const json_t *add;
	size_t i;

	if (!attachment_name_split(entry->key.name, &name))
		return false;
	json_array_foreach (adds, i, add)
		if (json_integer_value(json_object_get(add, "veth_index")) ==
			    entry->attachment.ifindex &&
		    !strcmp(add_cache_text(add, "network"), name.network) &&
		    !strcmp(add_cache_text(add, "container_id"), name.container_id) &&
		    !strcmp(add_cache_text(add, "ifname"), name.ifname))
			return true;
	return false;
}

int plan_check(const json_t *adds, const struct host *host, struct cni_error *err)
{
	const struct objects *objects = &host->datapath.objects;
	cleanup_free struct attachment_entry *entries = NULL;
	char who[DESCRIBED_ATTACHMENT_SIZE];
	size_t count;

	if (attachment_list(&host->datapath, &entries, &count, err))
		return -1;
	for (size_t i = 0; i < count; i++) {
		if (is_planned(adds, &entries[i]) ||
		    attachment_is_abandoned_locked(objects, host->socket, &entries[i]))
			continue;
		describe_attachment(objects, entries[i].key.name, who);
		cni_printable(who, "");
		return cni_error_set(err, CNI_ERROR_TRY_AGAIN, "%s was added meanwhile: try again",
				     who);
	}
	return 0;
}
