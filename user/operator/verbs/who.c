/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* who.c - `bpf-portmap who`: everybody who could have a port, and who gets what comes to it. */
#include "operator/verbs/who.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "conf/addresses.h"
#include "datapath/records/attachments.h"
#include "datapath/records/nat_ports.h"
#include "host/host.h"
#include "lib/cleanup.h"
#include "lib/memory.h"
#include "nat/nat_rule.h"
#include "nat/engine_chains.h"
#include "operator/verbs.h"
#include "operator/view/mappings.h"

/* Whether the socket has the port of this key, at one of its addresses. */
static bool claimant_socket_has(const struct host_socket *socket, const struct portmap_key *key)
{
	if (socket->protocol != key->protocol || socket->port != key->host_port)
		return false;
	if (cni_address_is_any(key->host_address) || cni_address_is_any(socket->address))
		return (socket->both_families && cni_address_is_any(socket->address)) ||
		       cni_address_is_ipv4(key->host_address) ==
			       cni_address_is_ipv4(socket->address);
	return !memcmp(socket->address, key->host_address, CNI_ADDRESS_SIZE);
}

static bool socket_is_asked_for(const struct claimants *claimants, const struct host_socket *socket)
{
	for (size_t i = 0; i < claimants->key_count; i++)
		if (claimant_socket_has(socket, &claimants->keys[i]))
			return true;
	return false;
}

static int claimants_find_sockets(struct claimants *claimants, struct cni_error *err)
{
	struct socket_list *found = &claimants->sockets;
	size_t kept = 0;

	if (sockets_find_bound(found, err))
		return -1;
	for (size_t i = 0; i < found->count; i++)
		if (socket_is_asked_for(claimants, &found->sockets[i]))
			found->sockets[kept++] = found->sockets[i];
	found->count = kept;
	/* All at once: it means to look at the open files of every process. */
	if (kept)
		processes_find_holders(found, NULL);
	return 0;
}

static int claimants_find_rules(struct claimants *claimants, struct cni_error *err)
{
	const struct address_list *list = claimants->addresses;
	uint8_t(*addresses)[CNI_ADDRESS_SIZE] =
		or_exit(calloc(list->address_count + 2, sizeof(*addresses)));
	const struct nat_asked asked = {claimants->keys, claimants->key_count,
					(const uint8_t(*)[CNI_ADDRESS_SIZE])addresses,
					list->address_count + 2};
	const struct nat_question question = {.place = NAT_EVERYWHERE, .asked = &asked};
	int result;

	for (size_t i = 0; i < list->address_count; i++)
		memcpy(addresses[i], list->addresses[i].address, CNI_ADDRESS_SIZE);
	memcpy(addresses[list->address_count], cni_address_loopback_ipv4, CNI_ADDRESS_SIZE);
	memcpy(addresses[list->address_count + 1], cni_address_loopback_ipv6, CNI_ADDRESS_SIZE);
	result = nat_rules_find(&claimants->rules, &question, err);
	free(addresses);
	return result;
}

enum {
	EXIT_FREE = 0,
	EXIT_TAKEN = 1,
	EXIT_COULD_NOT_LOOK = 3,
};

/* "8080", "53/udp", "443@192.0.2.1", "443/tcp@[2001:db8::1]" */
static bool parse_operand(struct who *who, const char *operand)
{
	cleanup_free char *copy = or_exit(strdup(operand));
	char *address = copy, *port = strsep(&address, "@");

	if (!options_parse_port(port, &who->port) || who->port.protocol == PROTOCOL_ICMP ||
	    who->port.protocol == PROTOCOL_ICMPV6 || who->port.protocol == PROTOCOL_UDPLITE)
		return false;
	if (!address)
		return true;
	if (*address == '[' && address[strlen(address) - 1] == ']')
		*strrchr(++address, ']') = '\0';
	who->has_address = true;
	return !cni_address_parse(address, who->address);
}

static bool is_asked_for(const struct who *who, const uint8_t address[CNI_ADDRESS_SIZE])
{
	if (!who->has_address)
		return true;
	if (cni_address_is_any(who->address) || cni_address_is_any(address))
		return cni_address_is_ipv4(who->address) == cni_address_is_ipv4(address);
	return !memcmp(who->address, address, CNI_ADDRESS_SIZE);
}

static struct contestant *add_contestant(struct who *who, const struct contestant *contestant)
{
	struct contestant *added = ARRAY_ADD(who->contestants, who->count);

	*added = *contestant;
	return added;
}

static void add_mapping(struct who *who, const struct mapping *mapping)
{
	const struct container_info *container = view_container(&who->view, mapping->portmap.owner);
	struct contestant *added =
		add_contestant(who, &(struct contestant){.kind = CONTESTANT_MAPPING,
							 .by = "bpf-portmap",
							 .address = mapping->key.host_address,
							 .protocol = mapping->key.protocol,
							 .mapping = mapping});
	struct policy *policy = or_exit(calloc(1, sizeof(*policy)));

	added->alive = container && container->has_record && container->live &&
		       attachment_has_veth(&who->host.datapath.objects, &container->record);
	added->serves_host = mapping->portmap.localhost;
	if (policy_read(&who->host.datapath.objects, mapping->portmap.owner, policy))
		added->policy = policy;
	else
		free(policy);
}

static int read_mappings(struct who *who, struct cni_error *err)
{
	struct datapath *datapath = &who->host.datapath;

	if (view_check(datapath, err))
		return -1;
	if (!datapath_is_usable(datapath))
		return 0;
	view_of_host(&who->view, &who->host);
	if (mappings_read(&who->mappings, &who->view, err) ||
	    mappings_add_replaced(&who->mappings, &who->view, err))
		return -1;
	for_each (mapping, who->mappings.list, who->mappings.count)
		if (mapping->key.host_port == who->port.port &&
		    (!who->port.protocol || who->port.protocol == mapping->key.protocol) &&
		    is_asked_for(who, mapping->key.host_address))
			add_mapping(who, mapping);
	return 0;
}

static const enum protocol all_protocols[] = {PROTOCOL_TCP, PROTOCOL_UDP, PROTOCOL_SCTP};

static void make_question(struct who *who)
{
	const uint8_t *const addresses[] = {who->has_address ? who->address : cni_address_any_ipv4,
					    cni_address_any_ipv6};
	struct claimants *claimants = &who->claimants;

	claimants->addresses = &who->host.addresses;
	claimants->keys = or_exit(calloc(6, sizeof(*claimants->keys)));
	for (size_t i = 0; i < 6; i++) {
		struct portmap_key *key = &claimants->keys[claimants->key_count];
		enum protocol protocol = all_protocols[i / 2];

		if ((who->port.protocol && who->port.protocol != protocol) ||
		    (who->has_address && i % 2))
			continue;
		key->protocol = protocol;
		key->host_port = who->port.port;
		memcpy(key->host_address, addresses[i % 2], CNI_ADDRESS_SIZE);
		claimants->key_count++;
	}
}

/* A rule that translates, and the one that leads to it, are one claim. The latter has portmap's
 * comment. */
static bool merge_rule(struct nat_rule *inner, const struct nat_rule *outer)
{
	if (!outer->jumps || strcmp(outer->target, inner->chain_name) != 0)
		return false;
	if (!*inner->comment)
		memcpy(inner->comment, outer->comment, sizeof(inner->comment));
	inner->hooks |= outer->hooks;
	return true;
}

static void merge_rules(struct nat_rule_list *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++) {
		bool merged = false;

		for (size_t j = 0; j < kept && !merged; j++)
			merged = merge_rule(&list->rules[j], &list->rules[i]);
		if (!merged)
			list->rules[kept++] = list->rules[i];
	}
	list->count = kept;
}

/* What cannot be read does not keep the rest from being shown. */
static void note_blindness(struct who *who, struct cni_error *err)
{
	fprintf(stderr, "bpf-portmap: could not look: %s\n", cni_error_message(err));
	cni_error_release(err);
	who->blind = true;
}

static void read_claimants(struct who *who)
{
	struct claimants *claimants = &who->claimants;
	struct cni_error err = {0};

	if (claimants_find_rules(claimants, &err))
		note_blindness(who, &err);
	merge_rules(&claimants->rules);
	for_each (rule, claimants->rules.rules, claimants->rules.count) {
		const uint8_t *any = rule->ipv4 ? cni_address_any_ipv4 : cni_address_any_ipv6;

		add_contestant(who, &(struct contestant){.kind = CONTESTANT_RULE,
							 .by = nat_engine_of(rule),
							 .address = nat_rule_has_any_address(rule)
									    ? any
									    : rule->address,
							 .protocol = (enum protocol)rule->protocol,
							 .rule = rule});
	}
	if (claimants_find_sockets(claimants, &err))
		note_blindness(who, &err);
	for_each (socket, claimants->sockets.sockets, claimants->sockets.count)
		add_contestant(who, &(struct contestant){.kind = CONTESTANT_SOCKET,
							 .by = "process",
							 .address = socket->address,
							 .protocol = socket->protocol,
							 .socket = socket});
}

/* --- who gets it --------------------------------------------------------------------------- */

/* Smaller is first; those of the same rank share what comes. */
enum rank {
	RANK_MAPPING_EXACT,
	RANK_MAPPING_ANY,
	RANK_RULE,
	RANK_SOCKET_EXACT,
	RANK_SOCKET_ANY,
	RANK_LEFT, /* a mapping where the programs leave what comes to the host's NAT */
	RANK_NONE,
};

/* What comes to a port at an address of the host. */
struct arrival {
	struct portmap_key to;
	bool is_mapped; /* bpf-portmap maps ports at the address, unless a policy says otherwise */
	bool is_left;   /* the programs leave what comes to the host's NAT */
	enum origin origin;
};

static bool mapping_claims(const struct contestant *contestant, const struct arrival *arrival)
{
	const struct portmap_key *key = &contestant->mapping->key, *to = &arrival->to;
	const struct policy *policy = contestant->policy;

	if (!contestant->alive || !mapping_gets_new(contestant->mapping) ||
	    key->protocol != to->protocol ||
	    (!arrival->is_mapped && cni_address_is_any(key->host_address)) ||
	    key->host_port != to->host_port ||
	    (arrival->origin == ORIGIN_HOST && !contestant->serves_host) ||
	    (policy &&
	     conf_ranges_hold(policy->excluded, policy->excluded_count, to->host_address)))
		return false;
	if (cni_address_is_any(key->host_address))
		return cni_address_is_ipv4(key->host_address) ==
		       cni_address_is_ipv4(to->host_address);
	return !memcmp(key->host_address, to->host_address, CNI_ADDRESS_SIZE);
}

static enum nat_hook hook_of(enum origin origin)
{
	return origin == ORIGIN_HOST ? NAT_FROM_HOST : NAT_FROM_OUTSIDE;
}

/* Rules at PREROUTING never see the packets of the host's own processes. */
static bool rule_claims(const struct nat_rule *rule, const struct arrival *arrival)
{
	const struct portmap_key *to = &arrival->to;

	return rule->hooks & hook_of(arrival->origin) &&
	       !(rule->not_loopback && cni_address_is_loopback(to->host_address)) &&
	       nat_rule_may_match(rule, to->protocol, to->host_address, to->host_port);
}

static enum rank rank_of(const struct contestant *contestant, const struct arrival *arrival)
{
	const struct portmap_key *to = &arrival->to;

	switch (contestant->kind) {
	case CONTESTANT_MAPPING:
		if (!mapping_claims(contestant, arrival))
			return RANK_NONE;
		if (arrival->is_left)
			return RANK_LEFT;
		return cni_address_is_any(contestant->mapping->key.host_address)
			       ? RANK_MAPPING_ANY
			       : RANK_MAPPING_EXACT;
	case CONTESTANT_RULE:
		return rule_claims(contestant->rule, arrival) ? RANK_RULE : RANK_NONE;
	default:
		if (!claimant_socket_has(contestant->socket, to))
			return RANK_NONE;
		return cni_address_is_any(contestant->socket->address) ? RANK_SOCKET_ANY
								       : RANK_SOCKET_EXACT;
	}
}

/* Rules stand in the order in which packets meet them. */
static void judge_arrival(struct who *who, const struct arrival *arrival)
{
	const struct contestant *winner = NULL;
	enum rank best = RANK_NONE;

	for (size_t i = 0; i < who->count; i++) {
		enum rank rank = rank_of(&who->contestants[i], arrival);

		if (rank < best) {
			best = rank;
			winner = &who->contestants[i];
		}
	}
	for_each (contestant, who->contestants, who->count) {
		struct contest_score *score = &contestant->scores[arrival->origin];
		enum rank rank = rank_of(contestant, arrival);

		if (rank == RANK_NONE)
			continue;
		/* Of several rules the first one translates, and no other is asked. */
		if (rank == best && rank != RANK_LEFT &&
		    (rank != RANK_RULE || contestant == winner))
			score->won++;
		else if (score->claimed == score->won)
			memcpy(score->lost_at, arrival->to.host_address, CNI_ADDRESS_SIZE);
		score->claimed++;
	}
}

static void judge_place(struct who *who, const uint8_t address[CNI_ADDRESS_SIZE], bool is_mapped)
{
	struct arrival arrival = {.to.host_port = who->port.port, .is_mapped = is_mapped};

	if (!is_asked_for(who, address))
		return;
	memcpy(arrival.to.host_address, address, CNI_ADDRESS_SIZE);
	who->places++;
	for (size_t i = 0; i < 3; i++) {
		if (who->port.protocol && who->port.protocol != all_protocols[i])
			continue;
		arrival.to.protocol = all_protocols[i];
		/* Nothing comes to a loopback address from outside. */
		arrival.origin = cni_address_is_loopback(address) ? ORIGIN_HOST : ORIGIN_OUTSIDE;
		for (; arrival.origin < ORIGIN_COUNT; arrival.origin++) {
			arrival.is_left = who->mappings.count &&
					  nat_port_hooks(&who->host.datapath.objects, &arrival.to) &
						  hook_of(arrival.origin);
			judge_arrival(who, &arrival);
		}
	}
}

/* The rest of 127.0.0.0/8, and of ::1, is asked for by name, or claimed by a socket. */
static void judge_other_loopback(struct who *who)
{
	const struct socket_list *sockets = &who->claimants.sockets;
	const uint8_t *judged = NULL;

	if (who->has_address && cni_address_is_loopback(who->address)) {
		judge_place(who, who->address, true);
		return;
	}
	judge_place(who, cni_address_loopback_ipv4, true);
	judge_place(who, cni_address_loopback_ipv6, true);
	for (size_t i = 0; i < sockets->count; i++) {
		const uint8_t *address = sockets->sockets[i].address;

		if (!cni_address_is_loopback(address) ||
		    !memcmp(address, cni_address_loopback_ipv4, CNI_ADDRESS_SIZE) ||
		    !memcmp(address, cni_address_loopback_ipv6, CNI_ADDRESS_SIZE) ||
		    (judged && !memcmp(address, judged, CNI_ADDRESS_SIZE)))
			continue;
		judge_place(who, address, true);
		judged = address;
	}
}

static int look(struct who *who, struct cni_error *err)
{
	const struct address_list *list = &who->host.addresses;
	struct cni_error blind = {0};

	if (host_open(&who->host, DATAPATH_READ, err))
		return -1;
	if (read_mappings(who, &blind))
		note_blindness(who, &blind);
	make_question(who);
	read_claimants(who);
	for_each (local, list->addresses, list->address_count)
		if (!local->is_broadcast)
			judge_place(who, local->address, host_maps_ports_at(&who->host, local));
	judge_other_loopback(who);
	return 0;
}

static void release(struct who *who)
{
	for (size_t i = 0; i < who->count; i++)
		free((void *)who->contestants[i].policy);
	free(who->contestants);
	mappings_release(&who->mappings);
	sockets_release(&who->claimants.sockets);
	nat_rule_list_release(&who->claimants.rules);
	free(who->claimants.keys);
	view_close(&who->view);
	host_close(&who->host);
}

/* An error must not look like a port that is taken. */
int verb_who(const struct options *options, char *const *operands, struct cni_error *err)
{
	struct who who = {.options = options};
	bool taken = false;
	int status;

	if (!parse_operand(&who, *operands)) {
		fprintf(stderr,
			"bpf-portmap: invalid port \"%.60s\": must be a port, such as 8080,"
			" 53/udp or 443@192.0.2.1\n",
			*operands);
		return EX_USAGE;
	}
	status = look(&who, err);
	for (size_t i = 0; i < who.count; i++)
		taken |= who_counts(&who.contestants[i]);
	if (!status && !who_print(&who, taken, err))
		status = taken ? EXIT_TAKEN : who.blind ? EXIT_COULD_NOT_LOOK : EXIT_FREE;
	else
		status = -1;
	release(&who);
	if (status >= 0)
		return status;
	fprintf(stderr, "bpf-portmap: could not look: %s\n", cni_error_message(err));
	cni_error_release(err);
	return EXIT_COULD_NOT_LOOK;
}
