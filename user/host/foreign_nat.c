/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* foreign_nat.c - rules of the host's own NAT for mapped ports. */
#include "host/foreign_nat.h"

#include <dirent.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/addresses.h"
#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "datapath/records/attachments.h"
#include "lib/cleanup.h"
#include "lib/digest.h"
#include "lib/error.h"
#include "lib/json.h"
#include "lib/memory.h"
#include "lib/ports.h"
#include "nat/nat_rule.h"
#include "nat/engine_chains.h"

/* --- which addresses a container was given ---------------------------------------------------- */

/* netavark writes a file NETWORK_CONTAINER here after the container's rules, so that it can write
 * these again when firewalld has removed them, and deletes it with the rules. The folder is the
 * same for all of root's Podmans. */
#define NETAVARK_PORTS "/run/containers/networks/firewall/ports"

static bool has_endpoint(const struct objects *objects, uint64_t container,
			 const uint8_t address[CNI_ADDRESS_SIZE])
{
	struct endpoint_key key;
	struct endpoint endpoint;
	struct slot slot;

	memcpy(key.address, address, CNI_ADDRESS_SIZE);
	return endpoint_read(objects, &key, &endpoint) &&
	       owner_read(objects, endpoint.owner, &slot) && slot.container == container;
}

static bool file_has_address(const char *file, const uint8_t address[CNI_ADDRESS_SIZE])
{
	const char *key = cni_address_is_ipv4(address) ? "container_ip_v4" : "container_ip_v6";
	char path[sizeof(NETAVARK_PORTS) + 1 + sizeof(((struct dirent *)0)->d_name)];
	cleanup_json json_t *written = NULL;
	uint8_t given[CNI_ADDRESS_SIZE];
	const char *text;

	snprintf(path, sizeof(path), NETAVARK_PORTS "/%s", file);
	written = json_load_file(path, 0, NULL);
	text = json_string_value(json_object_get(written, key));
	return text && !cni_address_parse(text, given) && !memcmp(given, address, sizeof(given));
}

static bool netavark_gave(uint64_t container, const uint8_t address[CNI_ADDRESS_SIZE])
{
	cleanup_listing DIR *folder = opendir(NETAVARK_PORTS);
	const struct dirent *entry;
	bool gave = false;

	while (!gave && folder && (entry = readdir(folder))) {
		const char *id = strrchr(entry->d_name, '_');

		gave = id && digest_add(DIGEST_OF_NOTHING, id + 1, strlen(id + 1)) == container &&
		       file_has_address(entry->d_name, address);
	}
	return gave;
}

/* Whether the container, by the digest that slots have, was given the address: on a network of
 * ours, by our maps, or on one of Podman's own, by what netavark keeps of its rules. False also
 * where that cannot be read. What its namespace has proves nothing, as root in there may add any
 * address. */
static bool container_was_given(const struct objects *objects, uint64_t container,
				const uint8_t address[CNI_ADDRESS_SIZE])
{
	return has_endpoint(objects, container, address) || netavark_gave(container, address);
}

/* Of one ADD. */
#define MAX_WARNINGS 16
#define RULE_TEXT_SIZE 640

/* Where a port leads that is mapped, or may be. */
struct destination {
	struct portmap portmap;
	uint64_t container; /* as slots have it; 0: nobody */
};

/* One look at the rules. */
struct foreign_nat {
	struct portmap_key *keys;               /* malloc'ed */
	struct destination *destinations;       /* of the keys, malloc'ed */
	uint8_t (*addresses)[CNI_ADDRESS_SIZE]; /* malloc'ed */
	struct nat_asked asked;
	struct nat_rule_list rules;
	struct nat_port_list taken; /* by those that are to have it */
	/* What was asked last of a container's addresses: thousands of ports lead to one. */
	struct {
		uint64_t container;
		uint8_t address[CNI_ADDRESS_SIZE];
		bool is_its;
	} answer;
};

static void release(struct foreign_nat *look)
{
	free(look->keys);
	free(look->destinations);
	free(look->addresses);
	nat_rule_list_release(&look->rules);
	nat_ports_release(&look->taken);
}

#define cleanup_foreign_nat __attribute__((cleanup(release)))

/* --- what is asked ------------------------------------------------------------------------- */

/* Those at which ports are mapped, where one for any address is meant. */
static void ask_at_addresses(struct foreign_nat *look, const struct host *host,
			     const struct policy *policy)
{
	const struct address_list *list = &host->addresses;
	size_t count = 0;

	look->addresses = or_exit(calloc(list->address_count + 1, sizeof(*look->addresses)));
	for_each (local, list->addresses, list->address_count)
		if (host_maps_ports_at(host, local) &&
		    !(policy &&
		      conf_ranges_hold(policy->excluded, policy->excluded_count, local->address)))
			memcpy(look->addresses[count++], local->address, CNI_ADDRESS_SIZE);
	look->asked.addresses = (const uint8_t(*)[CNI_ADDRESS_SIZE])look->addresses;
	look->asked.address_count = count;
}

static void ask_for_claims(struct foreign_nat *look, const struct host *host,
			   const struct container *container)
{
	const struct attachment_claims *claims = &container->claims;

	look->keys = or_exit(calloc(claims->port_count + 1, sizeof(*look->keys)));
	look->destinations = or_exit(calloc(claims->port_count + 1, sizeof(*look->destinations)));
	for (size_t i = 0; i < claims->port_count; i++) {
		look->keys[i] = claims->ports[i].key;
		look->destinations[i] = (struct destination){.portmap = claims->ports[i].portmap,
							     .container = claims->container};
	}
	look->asked.keys = look->keys;
	look->asked.key_count = claims->port_count;
	ask_at_addresses(look, host, &container->conf.policy);
}

static int ask_for_mappings(struct foreign_nat *look, const struct host *host,
			    struct cni_error *err)
{
	cleanup_walk struct map_walk walk = {.objects = &host->datapath.objects,
					     .map = MAP_PORTMAPS};
	size_t count = 0;

	while (map_next(&walk, err)) {
		const struct portmap_succession *entry = walk.value;
		const struct portmap_key *key = walk.key;
		struct slot slot;

		if (key->waiter)
			continue;
		*ARRAY_ADD(look->keys, look->asked.key_count) = *key;
		*ARRAY_ADD(look->destinations, count) = (struct destination){
			.portmap = entry->now,
			.container = owner_read(walk.objects, entry->now.owner, &slot)
					     ? slot.container
					     : 0};
	}
	look->asked.keys = look->keys;
	ask_at_addresses(look, host, NULL);
	return walk.failed ? -1 : 0;
}

/* --- what is taken ------------------------------------------------------------------------- */

/* Whether a rule for all interfaces but this one leaves out packets that may be for a container. */
static bool excepts_clients(const struct objects *objects, const struct nat_rule *rule)
{
	uint32_t ifindex = *rule->except_interface ? if_nametoindex(rule->except_interface) : 0;
	struct interface known;

	return ifindex && interface_read(objects, ifindex, &known) && known.role != ROLE_LEFT_ALONE;
}

bool foreign_nat_takes_all(const struct objects *objects, const struct nat_rule *rule)
{
	return rule->whole && strcmp(rule->verdict, "tproxy") != 0 &&
	       strcmp(nat_engine_of(rule), NAT_ENGINE_PORTMAP) != 0 &&
	       !excepts_clients(objects, rule);
}

/* Whether the rule leads to the same port as the mapping, if its address is one of the container's.
 */
static bool has_port_of(const struct portmap *portmap, const struct portmap_key *key,
			const struct nat_rule *rule)
{
	uint16_t port = rule->new_port ? rule->new_port : key->host_port;

	return port == portmap->container_port && !rule->is_one_of_several &&
	       cni_address_is_ipv4(rule->new_address) == cni_address_is_ipv4(key->host_address);
}

static bool leads_to_container(struct foreign_nat *look, const struct objects *objects, size_t i,
			       const struct nat_rule *rule)
{
	const struct destination *to = &look->destinations[i];

	if (!has_port_of(&to->portmap, &look->keys[i], rule))
		return false;
	/* The container's own claims are not in the maps yet. */
	if (!memcmp(rule->new_address, to->portmap.container_address, CNI_ADDRESS_SIZE))
		return true;
	if (look->answer.container != to->container ||
	    memcmp(look->answer.address, rule->new_address, CNI_ADDRESS_SIZE) != 0) {
		look->answer.container = to->container;
		memcpy(look->answer.address, rule->new_address, CNI_ADDRESS_SIZE);
		look->answer.is_its =
			container_was_given(objects, to->container, rule->new_address);
	}
	return look->answer.is_its;
}

bool foreign_nat_leads_to_container(const struct objects *objects, const struct nat_rule *rule,
				    const struct portmap_key *key, const struct portmap *portmap)
{
	struct slot slot;

	return has_port_of(portmap, key, rule) && owner_read(objects, portmap->owner, &slot) &&
	       container_was_given(objects, slot.container, rule->new_address);
}

/* Of any address: the rule takes what comes to every one. */
static bool takes_at(const struct nat_rule *rule, const struct portmap_key *key,
		     const uint8_t address[CNI_ADDRESS_SIZE], enum nat_hook hook)
{
	if (!rule->whole || !(rule->hooks & hook) ||
	    !nat_rule_may_match(rule, key->protocol, address, key->host_port))
		return false;
	return !cni_address_is_any(address) ||
	       (nat_rule_has_any_address(rule) && !(hook == NAT_FROM_HOST && rule->not_loopback));
}

/* Of several rules the first one translates, and no other is asked. */
static bool is_taken(struct foreign_nat *look, const struct objects *objects, size_t key,
		     const uint8_t address[CNI_ADDRESS_SIZE], enum nat_hook hook)
{
	for_each (rule, look->rules.rules, look->rules.count)
		if (takes_at(rule, &look->keys[key], address, hook) &&
		    !excepts_clients(objects, rule))
			return foreign_nat_takes_all(objects, rule) &&
			       !leads_to_container(look, objects, key, rule);
	return false;
}

static uint32_t hooks_at(struct foreign_nat *look, const struct objects *objects, size_t key,
			 const uint8_t address[CNI_ADDRESS_SIZE])
{
	return (is_taken(look, objects, key, address, NAT_FROM_OUTSIDE) ? NAT_FROM_OUTSIDE : 0U) |
	       (is_taken(look, objects, key, address, NAT_FROM_HOST) ? NAT_FROM_HOST : 0U);
}

/* At an address where it is not as at any there is an entry of its own. */
static void take(struct foreign_nat *look, const struct objects *objects, size_t number)
{
	const struct nat_asked *asked = &look->asked;
	const struct portmap_key *key = &look->keys[number];
	uint32_t at_any = hooks_at(look, objects, number, key->host_address), hooks;
	bool is_any = cni_address_is_any(key->host_address);
	struct portmap_key at = *key;

	if (at_any)
		nat_ports_add(&look->taken, key, at_any);
	for (size_t i = 0; is_any && i < asked->address_count; i++) {
		memcpy(at.host_address, asked->addresses[i], CNI_ADDRESS_SIZE);
		if (cni_address_is_ipv4(at.host_address) != cni_address_is_ipv4(key->host_address))
			continue;
		hooks = hooks_at(look, objects, number, at.host_address);
		if (hooks != at_any)
			nat_ports_add(&look->taken, &at, hooks);
	}
}

static int look_at_rules(struct foreign_nat *look, const struct objects *objects,
			 enum nat_place place, struct cni_error *err)
{
	const struct nat_question question = {.place = place, .asked = &look->asked};

	if (look->asked.key_count && nat_rules_find(&look->rules, &question, err))
		return -1;
	for (size_t i = 0; look->rules.count && i < look->asked.key_count; i++)
		take(look, objects, i);
	return 0;
}

/* --- what is said -------------------------------------------------------------------------- */

/* Prefers the first that gets what comes, then one with a comment: portmap's name the container.
 * What leads to the container itself is no other's, and rules behind it get nothing. */
static const struct nat_rule *rule_about(struct foreign_nat *look, const struct objects *objects,
					 size_t key)
{
	const struct nat_rule *best = NULL;
	int best_score = -1;
	uint32_t led = 0; /* from where all that comes is led to the container */

	for_each (rule, look->rules.rules, look->rules.count) {
		int score = 2 * rule->whole + !!*rule->comment;

		if (!(rule->hooks & ~led) ||
		    !nat_rule_may_take(rule, &look->keys[key], &look->asked))
			continue;
		if (leads_to_container(look, objects, key, rule)) {
			led |= rule->whole ? rule->hooks : 0U;
		} else if (score > best_score) {
			best = rule;
			best_score = score;
		}
	}
	return best;
}

/* "host port 8080/tcp is mapped to 10.88.0.2:80 by a rule in chain CNI-DN-0123 of iptables or
 * nftables (comment: dnat name: "web" id: "abc")" */
static void describe_rule(const struct nat_rule *rule, const struct portmap_key *key,
			  char text[RULE_TEXT_SIZE])
{
	static const uint8_t none[CNI_ADDRESS_SIZE];
	char address[CNI_ADDRESS_TEXT_SIZE], to[CNI_ADDRESS_TEXT_SIZE + 16] = "";

	cni_address_format(rule->new_address, address);
	if (memcmp(rule->new_address, none, sizeof(none)) != 0)
		snprintf(to, sizeof(to),
			 cni_address_is_ipv4(rule->new_address) ? " to %s:%u" : " to [%s]:%u",
			 address, rule->new_port ? rule->new_port : key->host_port);
	else if (!strcmp(rule->verdict, "redirect"))
		snprintf(to, sizeof(to), " to port %u of this host",
			 rule->new_port ? rule->new_port : key->host_port);
	snprintf(text, RULE_TEXT_SIZE,
		 "host port %u/%s is mapped%s by a rule in chain %s of iptables or nftables%s%s%s",
		 key->host_port, protocol_word(key->protocol), to, rule->chain_name,
		 *rule->comment ? " (comment: " : "", rule->comment, *rule->comment ? ")" : "");
}

/* Who gets what comes. `is_left`: the programs leave it to the rule. */
static void warn_of(const struct objects *objects, const struct nat_rule *rule, const char *text,
		    bool is_left)
{
	char address[CNI_ADDRESS_TEXT_SIZE], where[CNI_ADDRESS_TEXT_SIZE + 8] = "";

	if (!nat_rule_has_any_address(rule))
		snprintf(where, sizeof(where), " to %s",
			 cni_address_format(rule->address, address));
	if (!foreign_nat_takes_all(objects, rule))
		warning("%s: what comes from outside reaches this container from now on, and the"
			" rule gets no packet any more; stop the container that it belongs to, or"
			" map another hostPort or hostIP",
			text);
	else if (is_left)
		warning("%s: what comes%s%s is left to it and does not reach this container;"
			" remove the rule, or map another hostPort or hostIP",
			text, where,
			rule->hooks == NAT_FROM_OUTSIDE ? " from outside"
			: rule->hooks == NAT_FROM_HOST  ? " from this host's own processes"
							: "");
	else
		warning("%s: until the next `bpf-portmap repair` what comes%s reaches this"
			" container, from then on it is left to the rule; remove that, or map"
			" another hostPort or hostIP",
			text, where);
}

/* Of what the programs were told, or will be. */
static bool is_left(const struct foreign_nat *look, const struct objects *objects,
		    const struct nat_rule *rule, const struct portmap_key *key)
{
	const struct nat_port_list *taken = &look->taken;

	for (size_t i = 0; i < taken->count; i++) {
		const struct portmap_key *at = &taken->list[i].key;

		if (at->host_port == key->host_port && at->protocol == key->protocol &&
		    nat_rule_may_take(rule, at, &look->asked) && nat_port_hooks(objects, at))
			return true;
	}
	return false;
}

static int judge_rules(struct foreign_nat *look, const struct objects *objects, bool refuse,
		       struct cni_error *err)
{
	const struct portmap_key *warned = NULL;
	char text[RULE_TEXT_SIZE];
	size_t count = 0;

	/* Backwards: of both families IPv4 comes first. */
	for (size_t i = look->rules.count ? look->asked.key_count : 0; i-- > 0;) {
		const struct portmap_key *key = &look->asked.keys[i];
		const struct nat_rule *rule = rule_about(look, objects, i);

		/* A mapping without hostIP has a key for each family, but gets one warning. */
		if (!rule || (warned && warned->protocol == key->protocol &&
			      warned->host_port == key->host_port))
			continue;
		describe_rule(rule, key, text);
		if (refuse)
			return cni_error_set(err, CNI_ERROR_PORT_TAKEN,
					     "%s, and \"refuseForeign\" is true: stop the container"
					     " that it belongs to, remove the rule, or map another"
					     " hostPort or hostIP",
					     text);
		if (count++ == MAX_WARNINGS) {
			warning("rules of iptables or nftables map more of the ports that are "
				"mapped now");
			return 0;
		}
		warn_of(objects, rule, text, is_left(look, objects, rule, key));
		warned = key;
	}
	return 0;
}

/* --- the three that look ------------------------------------------------------------------- */

/* Where nothing is to be changed, without the lock: nobody else writes these ports' entries but
 * `repair`, for what it has seen itself. */
static int write_down(const struct objects *objects, struct nat_port_list *taken,
		      const struct nat_ports_change *change, struct cni_error *err)
{
	cleanup_lock int lock = -1;

	if (nat_ports_are_written(objects, taken, change))
		return 0;
	lock = lock_take_claims(err);
	return lock < 0 ? -1 : nat_ports_write(objects, taken, change, err);
}

int foreign_nat_check(const struct host *host, const struct container *container,
		      struct cni_error *err)
{
	const struct objects *objects = &host->datapath.objects;
	bool refuse = container->conf.refuse_foreign;
	cleanup_foreign_nat struct foreign_nat look = {0};
	cleanup_error struct cni_error failure = {0};
	struct nat_ports_change change = {0};

	if (!container->claims.port_count)
		return 0;
	ask_for_claims(&look, host, container);
	if (look_at_rules(&look, objects, NAT_WHERE_QUICK, &failure))
		return !refuse ? 0
			       : cni_error_set(err, failure.code, "\"refuseForeign\": %s",
					       cni_error_message(&failure));
	if (refuse)
		return judge_rules(&look, objects, true, err);
	/* What the last `repair` has seen elsewhere stays. */
	change.keeps = look.rules.is_partial;
	change.keys = look.asked.keys;
	change.key_count = look.asked.key_count;
	if (write_down(objects, &look.taken, &change, err))
		return -1;
	return judge_rules(&look, objects, false, err);
}

void foreign_nat_warn(const struct host *host, const struct container *container)
{
	const struct objects *objects = &host->datapath.objects;
	cleanup_foreign_nat struct foreign_nat look = {0};
	cleanup_error struct cni_error ignored = {0};

	ask_for_claims(&look, host, container);
	if (!look_at_rules(&look, objects, NAT_WHERE_QUICK, &ignored))
		judge_rules(&look, objects, false, NULL);
}

int foreign_nat_settle(const struct host *host, const struct nat_ports_change *change,
		       struct cni_error *err)
{
	const struct objects *objects = &host->datapath.objects;
	cleanup_foreign_nat struct foreign_nat look = {0};
	cleanup_lock int lock = change->dry_run ? -1 : lock_take_claims(err);

	/* From the look at the mappings on, or what an ADD writes down meanwhile would go. */
	if ((lock < 0 && !change->dry_run) || ask_for_mappings(&look, host, err) ||
	    look_at_rules(&look, objects, NAT_EVERYWHERE, err))
		return -1;
	return nat_ports_write(objects, &look.taken, change, err);
}
