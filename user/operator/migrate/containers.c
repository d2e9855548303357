/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* containers.c - whose ports portmap has mapped. */
#include "operator/migrate/containers.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cni/environment.h"
#include "conf/addresses.h"
#include "datapath/records/attachments.h"
#include "lib/memory.h"
#include "lib/cleanup.h"
#include "lib/json.h"
#include "lib/run.h"
#include "lib/text.h"
#include "nat/nat_rule.h"
#include "nat/portmap_rules.h"
#include "nat/engine_chains.h"
#include "net/address_list.h"
#include "cni/cache.h"

#define IPTABLES_SECONDS 30
#define RULE_WORDS 18 /* of a rule without conditions */
#define MAX_WORDS 9   /* of conditions: a "!", a match and its value, once for each of three */

static const char *const keys_of_family[] = {[false] = "conditionsV6", [true] = "conditionsV4"};

/* "8080,8443", as portmap writes them. */
static void list_ports(const struct nat_rule *rule, char *text, size_t size)
{
	size_t length = 0;

	*text = '\0';
	for (size_t i = 0; i < rule->range_count && length < size; i++)
		length += (size_t)snprintf(text + length, size - length, "%s%u", i ? "," : "",
					   rule->ports[i].first);
}

/* `iptables -C`, with which portmap asks, too. */
static bool iptables_has(const struct nat_rule *rule, const json_t *conditions)
{
	static const char *const programs[2][2] = {{"ip6tables-nft", "ip6tables-legacy"},
						   {"iptables-nft", "iptables-legacy"}};
	char protocol[4], ports[NAT_RULE_RANGES * sizeof("65535,")];
	const char *arguments[RULE_WORDS + MAX_WORDS + 1] = {
		programs[rule->ipv4][rule->legacy],
		"-w",
		"-t",
		rule->table,
		"-C",
		rule->chain_name,
		"-p",
		protocol,
		"-m",
		"comment",
		"--comment",
		rule->comment,
		"-m",
		"multiport",
		"--destination-ports",
		ports,
		"-j",
		rule->target,
	};
	cleanup_command struct command_run run = {.arguments = arguments,
						  .seconds = IPTABLES_SECONDS};
	const json_t *word;
	size_t i;

	if (json_array_size(conditions) > MAX_WORDS)
		return false;
	json_array_foreach (conditions, i, word)
		arguments[RULE_WORDS + i] = json_string_value(word);
	snprintf(protocol, sizeof(protocol), "%u", rule->protocol);
	list_ports(rule, ports, sizeof(ports));
	return command_run(&run);
}

/* Returns whether the rule has the conditions that the list of its container's ADD asks for, and no
 * others, as iptables itself says. True also where no option of ours does the same as these: the
 * list is refused then, which says more. */
static bool conditional_as_listed(const json_t *cached, const struct portmap_entry *entry)
{
	cleanup_json json_t *config = cached ? add_cache_config(cached) : NULL;
	cleanup_json json_t *ours = conditions_translate(config);
	const json_t *conditions = cni_json_get(config, keys_of_family[entry->rule.ipv4]);

	if (!json_array_size(conditions))
		return false;
	return !ours || iptables_has(&entry->rule, conditions);
}

char *conditional_translate(json_t *config)
{
	cleanup_json json_t *ours = conditions_translate(config);
	const char *key;
	json_t *value;

	/* An interface that one list excludes is none for other networks either. */
	if (!ours || !json_object_size(ours) || json_object_get(ours, "excludeInterfaces"))
		return NULL;
	json_object_foreach (ours, key, value)
		if (cni_json_get(config, key))
			return NULL;
	for (size_t i = 0; i < 2; i++)
		cni_json_delete(config, keys_of_family[i]);
	json_object_update(config, ours);
	return conditions_print(ours);
}

void migrating_leave(struct migrating *container, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(container->reason, sizeof(container->reason), format, arguments);
	va_end(arguments);
	cni_printable(container->reason, "");
	container->fate = MIGRATING_LEFT;
}

static const char *name_of_rules(const struct portmap_entry *entry)
{
	if (!strcmp(entry->rule.table, NAT_TABLE_OF_PORTMAP))
		return "nftables";
	return entry->rule.legacy ? "iptables-legacy" : "iptables";
}

/* Of a list with several ranges of clients as many rules jump to one port. */
static bool is_same_port(const struct migrating_port *one, const struct migrating_port *other)
{
	return !memcmp(&one->key, &other->key, sizeof(one->key)) &&
	       !memcmp(one->container_address, other->container_address, CNI_ADDRESS_SIZE) &&
	       one->container_port == other->container_port;
}

static void add_port(struct migrating *container, const struct portmap_entry *entry)
{
	const struct nat_rule *rule = &entry->rule;
	struct migrating_port port = {
		.key = {.protocol = (enum protocol)rule->protocol,
			.host_port = rule->ports[0].first},
		.container_port = rule->new_port,
		.rules = name_of_rules(entry),
	};
	memcpy(port.container_address, rule->new_address, CNI_ADDRESS_SIZE);
	memcpy(port.key.host_address,
	       !nat_rule_has_any_address(rule) ? rule->address
	       : rule->ipv4                    ? cni_address_any_ipv4
					       : cni_address_any_ipv6,
	       CNI_ADDRESS_SIZE);
	for (size_t i = 0; i < container->port_count; i++)
		if (is_same_port(&container->ports[i], &port))
			return;
	*ARRAY_ADD(container->ports, container->port_count) = port;
}

/* Rules of nftables do not say the network, and a container may be in several. A runtime that is
 * killed in its ADD keeps nothing. */
static const json_t *find_cached(const struct portmap_evidence *evidence,
				 const struct portmap_entry *entry)
{
	const json_t *cached;
	size_t i;

	json_array_foreach (evidence->cached, i, cached)
		if (portmap_entry_is_of(entry, add_cache_text(cached, "networkName"),
					add_cache_text(cached, "containerId")) &&
		    (!entry->is_address || add_cache_has_address(cached, entry->rule.new_address)))
			return cached;
	return NULL;
}

static struct migrating *container_of(struct migrating_list *containers,
				      const struct portmap_entry *entry)
{
	struct migrating *container = containers->list;

	for (; container < containers->list + containers->count; container++)
		if (portmap_entry_is_of(entry, container->network, container->id))
			return container;
	container = ARRAY_ADD(containers->list, containers->count);
	*container = (struct migrating){.cached = find_cached(&containers->evidence, entry)};
	snprintf(container->id, sizeof(container->id), "%s", entry->id);
	container_name_write(&containers->names, entry->id, container->name);
	snprintf(container->network, sizeof(container->network), "%s",
		 *entry->network || !container->cached
			 ? entry->network
			 : add_cache_text(container->cached, "networkName"));
	return container;
}

/* A container that lives and has not been kept can be told by its rules alone. */
static void judge_entry(struct migrating_list *containers, const struct portmap_entries *entries,
			const struct portmap_entry *entry)
{
	struct migrating *container = container_of(containers, entry);
	cleanup_error struct cni_error invalid = {0};

	if (entry->is_port)
		add_port(container, entry);
	if (container->fate != MIGRATING_MAP)
		return;
	if (portmap_container_is_gone(&containers->evidence, entries, entry))
		container->fate = MIGRATING_GONE;
	else if (entry->changed ||
		 (entry->conditional && !conditional_as_listed(container->cached, entry)))
		migrating_leave(container,
				"its rules are not as portmap writes them, or another rule"
				" comes before them");
	else if (!container->cached)
		migrating_leave(container,
				"no runtime has kept its ADD in %s: create the container anew, or"
				" remove its rules by hand: %s",
				ADD_CACHE,
				!strcmp(name_of_rules(entry), "nftables")
					? "nft -a list table ip " NAT_TABLE_OF_PORTMAP
				: entry->rule.legacy ? "iptables-legacy-save -t nat | grep CNI-DN-"
						     : "iptables-save -t nat | grep CNI-DN-");
	else if (entry->is_port && !container_addresses_count(&containers->evidence.addresses,
							      entry->rule.new_address))
		migrating_leave(container, "no network namespace has its address");
	else if (cni_validate_network_name(container->network, &invalid) ||
		 cni_validate_container_id(container->id, &invalid))
		migrating_leave(container, "%s", cni_error_message(&invalid));
}

/* portmap maps a port twice without an error, and packets go by the first rule, also by one that
 * stays. */
static const struct migrating *earlier_of(const struct migrating_list *containers,
					  const struct migrating *container,
					  const struct portmap_key *key)
{
	for (const struct migrating *other = containers->list; other < container; other++)
		for (size_t i = 0; other->fate != MIGRATING_GONE && i < other->port_count; i++)
			if (!memcmp(&other->ports[i].key, key, sizeof(*key)))
				return other;
	return NULL;
}

static void judge_owner(struct migrating *container, const struct portmap_key *key,
			const struct host *host)
{
	const struct objects *objects = &host->datapath.objects;
	char text[DESCRIBED_ATTACHMENT_SIZE], port[DESCRIBED_PORT_SIZE];
	struct attachment_name name;
	struct attachment_key owner;
	struct portmap portmap;
	struct slot slot;

	if (!portmap_read(objects, key, &portmap) ||
	    !owner_is_live_with_veth(objects, portmap.owner, &slot))
		return;
	slot_get_key(&slot, &owner);
	if (attachment_name_split(owner.name, &name) && !strcmp(name.network, container->network) &&
	    !strcmp(name.container_id, container->id))
		return;
	describe_attachment(objects, owner.name, text);
	describe_port(key, port);
	migrating_leave(container, "bpf-portmap has mapped %s to another: %s", port, text);
}

/* A container is taken over as a whole, or not at all. */
static void judge_port(const struct migrating_list *containers, struct migrating *container,
		       const struct portmap_key *key)
{
	const struct migrating *earlier = earlier_of(containers, container, key);
	const struct host *host = containers->evidence.host;
	char address[CNI_ADDRESS_TEXT_SIZE], port[DESCRIBED_PORT_SIZE];

	describe_port(key, port);
	if (!cni_address_is_any(key->host_address) && !cni_address_is_loopback(key->host_address) &&
	    !local_address_exists(host->socket, key->host_address))
		migrating_leave(container, "its address %s is not on this host",
				cni_address_format(key->host_address, address));
	else if (earlier)
		migrating_leave(container,
				"an earlier rule maps %s to container %s of network %s, and gets"
				" all packets",
				port, earlier->name, earlier->network);
	else if (datapath_is_usable(&host->datapath))
		judge_owner(container, key, host);
}

void migrating_find(struct migrating_list *containers, const struct portmap_entries *entries,
		    const struct host *host)
{
	bool known = portmap_evidence_gather(&containers->evidence, host);

	for (size_t i = 0; i < entries->count; i++)
		judge_entry(containers, entries, &entries->list[i]);
	for_each (container, containers->list, containers->count) {
		if (!known)
			migrating_leave(container,
					"what tells whether it lives could not be read in"
					" whole");
		for (size_t j = 0; j < container->port_count; j++)
			if (container->fate == MIGRATING_MAP)
				judge_port(containers, container, &container->ports[j].key);
	}
}

unsigned int migrating_not_kept(const struct migrating *container)
{
	unsigned int not_kept = 0;

	for (size_t i = 0; i < container->port_count; i++)
		not_kept += container->ports[i].not_kept;
	return not_kept;
}

void migrating_release(struct migrating_list *containers)
{
	for (size_t i = 0; i < containers->count; i++)
		free(containers->list[i].ports);
	free(containers->list);
	portmap_evidence_release(&containers->evidence);
	container_names_release(&containers->names);
	*containers = (struct migrating_list){0};
}
