/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * verb_list.c - list: what the cache has for a network.
 */
#include <string.h>

#include "cni/cleanup.h"
#include "cni/json.h"
#include "cnirun/cache.h"
#include "cnirun/conflist.h"
#include "cnirun/netns.h"
#include "cnirun/output.h"
#include "cnirun/verbs.h"

#define cleanup_conflist __attribute__((cleanup(conflist_release)))

/* "" where it is none: the table's text comes from a file that anybody may have written. */
static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(cni_json_get(object, key));

	return text ? text : "";
}

static void print_address(const json_t *object, const char *key, const char **separator)
{
	const char *address = text_of(object, key);

	if (!*address)
		return;
	output_text("%s%s", *separator, address);
	*separator = ",";
}

static void print_addresses(const json_t *result)
{
	const char *separator = "";
	const json_t *address;
	size_t index;

	print_address(cni_json_get(result, "ip4"), "ip", &separator);
	print_address(cni_json_get(result, "ip6"), "ip", &separator);
	json_array_foreach (cni_json_get(result, "ips"), index, address)
		print_address(address, "address", &separator);
	if (!*separator)
		output_text("-");
}

static void print_host_address(const char *address)
{
	if (strchr(address, ':'))
		output_text("[%s]:", address);
	else if (*address)
		output_text("%s:", address);
}

/* "127.0.0.1:8080->80/tcp" */
static void print_ports(const json_t *capability_args)
{
	const char *separator = " ";
	const json_t *mapping;
	size_t index;

	json_array_foreach (cni_json_get(capability_args, "portMappings"), index, mapping) {
		output_text("%s", separator);
		print_host_address(text_of(mapping, "hostIP"));
		output_text("%" JSON_INTEGER_FORMAT "->%" JSON_INTEGER_FORMAT "/%s",
			    json_integer_value(cni_json_get(mapping, "hostPort")),
			    json_integer_value(cni_json_get(mapping, "containerPort")),
			    text_of(mapping, "protocol"));
		separator = ",";
	}
}

static void print_entry(const struct cache_entry *entry)
{
	const char *netns = entry->netns && *entry->netns ? entry->netns : "-";

	output_text("%-28s %-10s %s%s ", entry->container_id, entry->ifname, netns,
		    netns_is_gone(netns) && *netns != '-' ? "(gone)" : "");
	print_addresses(entry->result);
	print_ports(entry->capability_args);
	output_text("\n");
}

static int print_table(const struct cache_entries *entries, struct cni_error *err)
{
	output_text("%-28s %-10s NETNS ADDRESSES PORTS\n", "CONTAINER", "INTERFACE");
	for (size_t i = 0; i < entries->count; i++)
		print_entry(&entries->entries[i]);
	return output_flush(err);
}

/* The cache's own objects, without the list that each of them carries. */
static int print_json(const struct cache_entries *entries, struct cni_error *err)
{
	cleanup_json json_t *all = json_array();

	for (size_t i = 0; all && i < entries->count; i++) {
		json_object_del(entries->entries[i].root, "config");
		if (json_array_append(all, entries->entries[i].root))
			return cni_error_no_memory(err);
	}
	return all ? output_json(all, err) : cni_error_no_memory(err);
}

int verb_list(const struct options *options, struct cni_error *err)
{
	cleanup_cache_entries struct cache_entries entries = {0};
	cleanup_conflist struct conflist list = {0};
	size_t unreadable = 0;

	if (conflist_find(&list, options->conflist, err) ||
	    cache_read_all(&entries, options->cache_directory, list.name, &unreadable, err))
		return -1;
	return options->json ? print_json(&entries, err) : print_table(&entries, err);
}
