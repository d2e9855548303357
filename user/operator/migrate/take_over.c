/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * take_over.c - what ADD would do, for a container that runs already and whose ports are in use.
 *
 * ADD attaches to the veth first, because its container sends nothing yet. Here that comes last:
 * from_container drops what comes from a veth without an attachment. And connections through
 * portmap's rules must never meet a mapping without having a record (connections.h).
 */
#include "operator/migrate/take_over.h"

#include <stdio.h>
#include <string.h>

#include "cni/json.h"
#include "datapath/records/adopt.h"
#include "datapath/records/attachment_add.h"
#include "datapath/records/attachment_remove.h"
#include "datapath/records/attachments.h"
#include "datapath/records/describe.h"
#include "datapath/records/networks.h"
#include "datapath/records/owners.h"
#include "host/container.h"
#include "plan/hooks.h"
#include "host/host_sockets.h"
#include "host/interfaces.h"
#include "host/prerequisites.h"
#include "host/ready.h"
#include "host/removal.h"
#include "lib/cleanup.h"
#include "lib/memory.h"
#include "net/bridge_entry.h"
#include "operator/migrate/connections.h"

/* One container. */
struct taking {
	struct portmap_rules *rules;
	const struct migrating *migrating;
	size_t number;
	struct cni_environment environment;
	struct cni_network_config config;
	struct container container;
	struct host host;
	struct keeping keeping;
	struct policy policy; /* that it is to have */
	struct hook_changes veth_hooks;
	bool needs_witness;
	struct attach_undo undo;
	bool is_new; /* claimed by this run */
	char netns[64];
};

static bool is_mine(const struct taking *taking, const struct portmap_rule *rule)
{
	return rule->fate == RULE_MAP && rule->container == taking->number;
}

static const char *protocol_name(enum protocol protocol)
{
	return protocol == PROTOCOL_TCP ? "tcp" : protocol == PROTOCOL_UDP ? "udp" : "sctp";
}

static json_t *make_mapping(const struct portmap_rule *rule)
{
	char address[CNI_ADDRESS_TEXT_SIZE];

	return json_pack("{s:i, s:i, s:s, s:s}", "hostPort", rule->key.host_port, "containerPort",
			 rule->container_port, "protocol", protocol_name(rule->key.protocol),
			 "hostIP", cni_address_format(rule->key.host_address, address));
}

/* The configuration that a runtime would give to ADD. */
static json_t *make_config(const struct taking *taking)
{
	const struct migrating *migrating = taking->migrating;
	json_t *mappings = json_array();
	bool snat = false, all = false;

	for (size_t i = 0; i < taking->rules->count; i++) {
		const struct portmap_rule *rule = &taking->rules->rules[i];

		if (!is_mine(taking, rule))
			continue;
		json_array_append_new(mappings, make_mapping(rule));
		snat |= rule->masquerades;
		all |= rule->masquerades_all;
	}
	return json_pack("{s:s, s:s, s:s, s:b, s:b, s:{s:o}, s:{s:s, s:[{s:s, s:s}], s:O}}",
			 "cniVersion", "1.0.0", "name", migrating->network, "type", "bpf-portmap",
			 "snat", snat, "masqAll", all, "runtimeConfig", "portMappings", mappings,
			 "prevResult", "cniVersion", "1.0.0", "interfaces", "name",
			 migrating->ifname, "sandbox", taking->netns, "ips", migrating->ips);
}

static int read_config(struct taking *taking, struct cni_error *err)
{
	const struct migrating *migrating = taking->migrating;
	cleanup_json json_t *config = NULL;
	cleanup_free char *text = NULL;

	snprintf(taking->netns, sizeof(taking->netns), "/proc/self/fd/%d", migrating->netns);
	taking->environment = (struct cni_environment){
		.command = CNI_ADD,
		.command_name = "ADD",
		.container_id = migrating->id,
		.netns = taking->netns,
		.ifname = migrating->ifname,
		.args = migrating->arguments,
		.path = "",
	};
	config = make_config(taking);
	text = need(json_dumps(config, 0));
	return cni_network_config_parse(&taking->config, text, strlen(text), &taking->environment,
					err) ||
			       container_open_netns(&taking->container, &taking->environment,
						    err) ||
			       container_read(&taking->container, &taking->environment,
					      &taking->config, err)
		       ? -1
		       : 0;
}

/* ADD maps to a container's first address of a family. */
static int check_targets(const struct taking *taking, struct cni_error *err)
{
	const struct attachment_claims *claims = &taking->container.claims;

	for (size_t i = 0; i < taking->rules->count; i++) {
		const struct portmap_rule *rule = &taking->rules->rules[i];
		bool found = !is_mine(taking, rule);

		for (size_t j = 0; j < claims->port_count && !found; j++)
			found = !memcmp(&claims->ports[j].key, &rule->key, sizeof(rule->key)) &&
				!memcmp(claims->ports[j].container_address, rule->container_address,
					sizeof(rule->container_address)) &&
				claims->ports[j].container_port == rule->container_port;
		if (!found)
			return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
					     "port %u is mapped to another address than the"
					     " container's first one",
					     rule->key.host_port);
	}
	return 0;
}

/* Programs and maps, and all hooks but the veth's. */
static int prepare_host(struct taking *taking, struct cni_error *err)
{
	struct container *container = &taking->container;
	const struct look_at at = {
		.container = container, .network = taking->config.name, .adds = true};
	cleanup_plan struct plan plan = {0};
	struct host *host = &taking->host;

	if (host_open(host, PINS_ALL, err) ||
	    container_find_veth(container, &taking->environment, host, err) ||
	    datapath_make_ready(&host->datapath, &host->addresses, container->conf.flow_entries,
				err))
		return -1;
	container_choose_fast_path(container, &host->datapath.objects);
	if (host_settle(host, &at, &plan, err) || host_sockets_attach(host, &container->conf, err))
		return -1;
	plan_warn(&plan);
	container->claims.interface = plan.veth;
	taking->veth_hooks = plan.veth_hooks;
	taking->needs_witness = plan.needs_witness;
	taking->keeping = (struct keeping){.rules = taking->rules,
					   .container = taking->number,
					   .objects = &host->datapath.objects,
					   .program = -1};
	return 0;
}

/* Whether a run that was killed has claimed all of it. A claim that is not finished is claimed
 * again. */
static int find_claimed(const struct taking *taking, bool *claimed, struct cni_error *err)
{
	const struct attachment_claims *claims = &taking->container.claims;
	const struct objects *objects = &taking->host.datapath.objects;
	struct attachment record;
	struct portmap portmap;

	*claimed = false;
	if (!attachment_read(objects, &claims->key, &record) || record.state != ATTACHMENT_READY)
		return 0;
	for (size_t i = 0; i < claims->port_count; i++)
		if (!portmap_read(objects, &claims->ports[i].key, &portmap) ||
		    !owner_is(portmap.owner, record.owner))
			return cni_error_set(err, CNI_ERROR_PORT_TAKEN,
					     "bpf-portmap has mapped other ports of this container"
					     " already, and mapping it anew would end their"
					     " connections: create it anew");
	*claimed = true;
	return 0;
}

static int claim(struct taking *taking, struct cni_error *err)
{
	const struct objects *objects = &taking->host.datapath.objects;
	struct attachment_claims *claims = &taking->container.claims;
	bool claimed;

	taking->policy = taking->container.conf.policy;
	if (find_claimed(taking, &claimed, err))
		return -1;
	if (claimed)
		return 0;
	if (connections_keep(&taking->keeping, err))
		return -1;
	adopt_close_policy(&taking->container.conf.policy);
	taking->is_new = !attachment_add(objects, taking->host.socket, claims, err);
	return taking->is_new ? 0 : -1;
}

/* portmap's rules, which stay, get the packets again. Without an attachment the program at the veth
 * would drop what the container sends, so it goes too. */
static void give_back(struct taking *taking, struct cni_error *err)
{
	const struct attachment_claims *claims = &taking->container.claims;
	struct cni_error failure = {0};

	attach_rollback(taking->container.veth.link.ifindex, &taking->undo);
	if (attachment_remove(&taking->host.datapath.objects, &claims->key, claims, &failure))
		cni_error_chain(err, &failure);
}

/* What fails before the policy is open is undone, unless a run that was killed has claimed it:
 * then connections may be ours already. */
static int complete(struct taking *taking, struct cni_error *err)
{
	const struct objects *objects = &taking->host.datapath.objects;
	const struct attachment_claims *claims = &taking->container.claims;
	struct link_name veth = {.ifindex = claims->ifindex};
	struct cni_error failure = {0};
	struct attachment record;
	int result = 0;

	if (connections_keep(&taking->keeping, &failure))
		result = cni_error_chain(err, &failure);
	memcpy(veth.name, taking->container.veth.link.name, sizeof(veth.name));
	if (attach_apply(&taking->host.datapath, &veth, &taking->veth_hooks, &taking->undo,
			 &failure))
		result = cni_error_chain(err, &failure);
	if (result && taking->is_new) {
		give_back(taking, err);
		return -1;
	}
	if (attachment_read(objects, &claims->key, &record) &&
	    adopt_is_closed(objects, record.owner) &&
	    adopt_open_policy(objects, record.owner, &taking->policy, &failure))
		result = cni_error_chain(err, &failure);
	bridge_entry_add_new(taking->host.socket, claims->ifindex, claims->container_mac);
	if (taking->needs_witness && attachment_read(objects, &claims->key, &record))
		network_has_container(&taking->host, taking->config.name, &taking->container.conf,
				      record.owner);
	prerequisites_warn(&taking->host, &taking->container);
	return result;
}

static void mark_mapped(const struct taking *taking)
{
	for (size_t i = 0; i < taking->rules->count; i++) {
		struct portmap_rule *rule = &taking->rules->rules[i];

		if (!is_mine(taking, rule))
			continue;
		rule->fate = RULE_MAPPED;
		if (rule->not_kept)
			snprintf(rule->reason, sizeof(rule->reason),
				 "%u connections may break: the table of connections has no room"
				 " for them",
				 rule->not_kept);
	}
}

int take_over(struct portmap_rules *rules, const struct migrating_list *containers, size_t number,
	      struct cni_error *err)
{
	struct taking taking = {
		.rules = rules,
		.migrating = &containers->list[number],
		.number = number,
		.container.netns = -1,
		.keeping.program = -1,
	};
	int result = -1;

	if (!read_config(&taking, err) && !check_targets(&taking, err) &&
	    !prepare_host(&taking, err) && !claim(&taking, err))
		result = complete(&taking, err);
	result = host_withdraw_if_removed(&taking.host, result, err);
	if (!result)
		mark_mapped(&taking);
	cleanup_close_pointer(&taking.keeping.program);
	container_release(&taking.container);
	cni_network_config_release(&taking.config);
	host_close(&taking.host);
	return result;
}

static bool is_same_container(const struct portmap_rule *one, const struct portmap_rule *other)
{
	return one->fate == RULE_MAP && one->container == other->container;
}

/* A rule that stays gets its packets too. In iptables none come to a chain without a jump. */
static bool gets_packets(const struct portmap_rules *rules, const struct portmap_rule *rule)
{
	return rule->fate != RULE_DEAD && (!rules->sources[rule->source].save || rule->order);
}

/* portmap maps a port twice without an error, and packets go by the first rule. */
static const struct portmap_rule *earlier_rule(const struct portmap_rules *rules, size_t number)
{
	const struct portmap_rule *rule = &rules->rules[number];

	for (size_t i = 0; i < number; i++)
		if (gets_packets(rules, &rules->rules[i]) &&
		    !memcmp(&rules->rules[i].key, &rule->key, sizeof(rule->key)) &&
		    !is_same_container(&rules->rules[i], rule))
			return &rules->rules[i];
	return NULL;
}

static void judge_owner(struct portmap_rule *rule, const struct migrating *migrating,
			const struct host *host)
{
	const struct objects *objects = &host->datapath.objects;
	char text[DESCRIBED_ATTACHMENT_SIZE];
	cleanup_error struct cni_error ignored = {0};
	struct attachment_key key, own;
	struct portmap portmap;
	struct slot slot;

	if (!portmap_read(objects, &rule->key, &portmap) ||
	    !owner_is_live_with_veth(objects, host->socket, portmap.owner, &slot) ||
	    attachment_key_make(&own, migrating->network, migrating->id, migrating->ifname,
				&ignored))
		return;
	slot_get_key(&slot, &key);
	if (!memcmp(&key, &own, sizeof(key)))
		return;
	describe_attachment(objects, key.name, text);
	rule_leave(rule, "bpf-portmap has mapped the port to another: %s", text);
}

void take_over_judge(struct portmap_rules *rules, const struct migrating_list *containers,
		     const struct host *host)
{
	for (size_t i = 0; i < rules->count; i++) {
		struct portmap_rule *rule = &rules->rules[i];
		const uint8_t *address = rule->key.host_address;
		const struct portmap_rule *earlier;

		if (rule->fate != RULE_MAP)
			continue;
		earlier = earlier_rule(rules, i);
		if (!cni_address_is_any(address) && !cni_address_is_loopback(address) &&
		    !local_address_exists(host->socket, address))
			rule_leave(rule, "its address is not on this host");
		else if (earlier)
			rule_leave(rule,
				   "an earlier rule maps the port to container %s of"
				   " network %s, and gets all packets",
				   earlier->id, earlier->network);
		else if (datapath_is_usable(&host->datapath))
			judge_owner(rule, &containers->list[rule->container], host);
	}
}
