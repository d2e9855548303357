/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* uplinks.c - which interfaces are uplinks. */
#include "plan/uplinks.h"

#include <stdio.h>
#include <string.h>

#include "lib/memory.h"
#include "lib/text.h"

enum wish uplink_wish(const struct network_wish *network, const char *interface)
{
	/* "eth*" but not "eth1": what the same conflist excludes is an exception. */
	if (conf_names_interface(network->excluded_interfaces, interface))
		return WISH_EXCLUDED;
	if (!*network->uplinks)
		return WISH_ANY;
	return conf_names_interface(network->uplinks, interface) ? WISH_NAMED : WISH_NOT;
}

/* The most explicit one: TCX fails where the kernel has none, and then a filter would do. */
static void prefer_mode(enum attach_mode *mode, enum attach_mode other)
{
	if (*mode == ATTACH_AUTO || other == ATTACH_CLSACT)
		*mode = other;
}

struct uplink_verdict uplink_decide(const struct look *look, const struct interface_look *interface)
{
	struct uplink_verdict verdict = {.attach = ATTACH_AUTO};
	bool is_named = interface->entry.by_administrator || interface->is_named_now;
	bool is_excluded = interface->entry.addresses_excluded && !look->network_count;
	bool is_wanted = interface_is_served(&interface->entry) && !look->network_count;
	/* One whose address is gone for a while stays what it was. */
	bool can_serve = (interface->addressed && interface->addressed->is_reachable) ||
			 interface_is_served(&interface->entry);

	for_each (network, look->networks, look->network_count) {
		enum wish wish = uplink_wish(network, interface->link.name);

		is_named |= wish == WISH_NAMED;
		is_excluded |= wish == WISH_EXCLUDED;
		is_wanted |= wish == WISH_ANY && can_serve;
		if (wish == WISH_NOT && network->number && !interface->entry.by_administrator &&
		    !interface->is_named_now)
			verdict.refusing |= 1ULL << network->number;
		prefer_mode(&verdict.attach, network->attach);
	}
	if (!look->network_count)
		verdict.attach = interface->entry.attach_mode;
	verdict.is_uplink = is_named || is_wanted;
	verdict.addresses_excluded = is_excluded && !is_named;
	return verdict;
}

bool uplink_is_containers(const struct interface_look *interface)
{
	const struct hook_look *ingress = &interface->hooks.hooks[HOOK_INGRESS];

	for (size_t i = 0; i < ingress->count; i++)
		if (ingress->list[i].program == PROGRAM_FROM_CONTAINER)
			return true;
	return false;
}

bool uplink_is_possible(const struct interface_look *interface, char why[WHY_NOT_SIZE])
{
	const struct link *link = &interface->link;

	if (!link->ifindex || interface->is_gone)
		snprintf(why, WHY_NOT_SIZE, "does not exist");
	else if (link->flags & IFF_LOOPBACK)
		snprintf(why, WHY_NOT_SIZE, "is the loopback interface");
	else if (link->flags & IFF_SLAVE)
		snprintf(why, WHY_NOT_SIZE, "belongs to a bond, which is the one to attach to");
	else if (link->header == LINK_HEADER_OTHER)
		/* The programs would look for the IP header in the wrong place. Without an entry
		 * from_container lets nothing masqueraded out there. */
		snprintf(why, WHY_NOT_SIZE, "has frames that begin with neither Ethernet nor IP");
	else if (uplink_is_containers(interface))
		/* A ptp container's, whose own ADD is under way or whose DEL has begun. */
		snprintf(why, WHY_NOT_SIZE, "belongs to a container");
	else if (link_is_kind(&interface->master, "bridge"))
		snprintf(why, WHY_NOT_SIZE,
			 "is a port of the bridge %s, which is the one to attach to",
			 interface->master.name);
	else
		return true;
	return false;
}

static const struct network_wish *find_request(const struct look *look)
{
	for (size_t i = 0; i < look->network_count; i++)
		if (look->networks[i].is_of_request)
			return &look->networks[i];
	return NULL;
}

/* Finds another network whose wish prevails, or one that prevails over it. */
static const struct network_wish *find_opponent(const struct look *look, const char *interface,
						enum wish wish)
{
	for_each (other, look->networks, look->network_count) {
		enum wish its = uplink_wish(other, interface);

		if (other->is_of_request)
			continue;
		if ((its == WISH_NAMED && wish == WISH_EXCLUDED) ||
		    (its == WISH_EXCLUDED && (wish == WISH_NAMED || wish == WISH_ANY)))
			return other;
	}
	return NULL;
}

static const char *const words[] = {
	[WISH_ANY] = "gives no \"uplinks\"",
	[WISH_NAMED] = "names it in \"uplinks\"",
	[WISH_EXCLUDED] = "excludes it",
};

char *uplink_conflict(const struct look *look)
{
	const struct network_wish *request = find_request(look), *other;

	for (size_t i = 0; request && i < look->count; i++) {
		const struct interface_look *interface = &look->interfaces[i];
		enum wish wish;
		struct uplink_verdict verdict;

		/* Containers, and what serves them whatever is said of it. */
		if (!interface->link.name[0] || interface_is_containers(&interface->entry) ||
		    interface->entry.role == ROLE_LOOPBACK || interface->entry.role == ROLE_BRIDGE)
			continue;
		wish = uplink_wish(request, interface->link.name);
		other = find_opponent(look, interface->link.name, wish);
		if (!other)
			continue;
		verdict = uplink_decide(look, interface);
		return cni_format("conflists differ about interface %s: network %s %s,"
				  " network %s %s; for all networks it is %s, and %s",
				  interface->link.name, request->name, words[wish], other->name,
				  words[uplink_wish(other, interface->link.name)],
				  verdict.is_uplink ? "an uplink" : "no uplink",
				  verdict.addresses_excluded ? "no port is mapped at its addresses"
							     : "ports are mapped at its addresses");
	}
	return NULL;
}

static bool can_be_one(const struct interface_look *interface)
{
	char why_not[WHY_NOT_SIZE];

	return !interface->is_gone && !interface_is_containers(&interface->entry) &&
	       interface->entry.role != ROLE_LOOPBACK &&
	       (!interface->is_read || uplink_is_possible(interface, why_not));
}

/* Appends another name. */
static void append_name(char **list, const char *quote, const char *name)
{
	char *longer =
		cni_format("%s%s%s%s%s", *list ? *list : "", *list ? ", " : "", quote, name, quote);

	free(*list);
	*list = longer;
}

char *uplink_unmatched(const struct look *look)
{
	const struct network_wish *request = find_request(look);
	char *named = NULL, *possible = NULL, *text;

	if (!request || !*request->uplinks)
		return NULL;
	for (size_t i = 0; i < look->count; i++)
		if (uplink_wish(request, look->interfaces[i].link.name) == WISH_NAMED &&
		    can_be_one(&look->interfaces[i]))
			return NULL;
	for_each_name (name, request->uplinks)
		append_name(&named, "\"", name);
	for (size_t i = 0; i < look->count; i++)
		if (look->interfaces[i].addressed && can_be_one(&look->interfaces[i]))
			append_name(&possible, "", look->interfaces[i].link.name);
	text = cni_format("\"uplinks\" (%s) match no interface that can be one, so mapped ports are"
			  " not reached from outside, and containers leave with their own"
			  " addresses; there are %s",
			  named, possible ? possible : "none");
	free(named);
	free(possible);
	return text;
}
